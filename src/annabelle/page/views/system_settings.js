// Settings: a form for each, made of what the hub says of it. Secrets can be set and are never shown.
import { get, post } from "../api.js";
import { badge, button, codeBlock, describeError, details, h, makeField, replace, toast } from "../dom.js";
import { restartNeeded } from "./system.js";

const SOURCES = { environment: "set by the environment", home: "set by you" };

export async function show(root, place) {
  const { settings } = await get("/settings");
  const waiting = h("div", { role: "status" });
  const none = h("p.empty", { hidden: true }, "No setting is like this.");
  const rows = settings.map((one) => settingRow(one, tellRestart));
  const search = makeField({ name: "search", label: "Search settings", kind: "search", value: place.query.get("search") ?? "" });
  const changed = makeField({ name: "changed", label: "Only those that are set", kind: "checkbox" });

  function tellRestart() {
    const names = rows.filter((one) => one.setting.restartNeeded).map((one) => one.setting.name);
    replace(waiting, names.length > 0 && restartNeeded(`${names.join(", ")} counts from the next start.`));
  }
  function filter() {
    const words = search.read().toLowerCase().split(/\s+/);
    for (const { setting, element } of rows) {
      const text = `${setting.name} ${setting.description}`.toLowerCase();
      element.hidden = !words.every((one) => text.includes(one)) || (changed.read() && !setting.isSet);
    }
    none.hidden = rows.some((one) => !one.element.hidden);
  }
  search.input.addEventListener("input", filter);
  changed.input.addEventListener("change", filter);
  tellRestart();
  filter();
  replace(
    root,
    h("h2", "Settings"),
    h("p", "A setting comes from the environment, else from config/settings.env in the home, else it has its default."),
    waiting,
    h("div.row.settings-search", search.element, changed.element),
    rows.map((one) => one.element),
    none,
  );
}

function settingRow(setting, onChange) {
  const summary = h("span");
  const body = h("div");
  const row = { setting, element: details(summary, body, { className: "line", data: { setting: setting.name } }) };
  const drawSummary = () => {
    const one = row.setting;
    const shown = one.kind === "secret" ? (one.isSet ? "••••••••" : "not set") : one.value || "empty";
    replace(
      summary,
      h("code", one.name),
      h("span.value", shown),
      SOURCES[one.origin] && [badge(SOURCES[one.origin], "good"), " "],
      one.restartNeeded && [badge("restart needed", "wait"), " "],
      one.problem && badge("not valid", "bad"),
      h("span.hint", " ", one.description),
    );
  };
  const save = async (value) => {
    row.setting = await post("/settings", { name: setting.name, value });
    toast(row.setting.restartNeeded ? `${setting.name} is changed. It counts from the next start.` : `${setting.name} is as Annabelle runs with it.`);
    drawSummary();
    fillRow(body, row.setting, save);
    onChange();
  };
  row.element.addEventListener("toggle", () => row.element.open && !body.childElementCount && fillRow(body, row.setting, save));
  drawSummary();
  return row;
}

function fillRow(body, setting, save) {
  const problem = h("p.problem", { role: "alert" }, setting.problem ?? "");
  const field = makeField(fieldOf(setting));
  const send = async (value) => {
    // Empty, it would be taken out: nobody sees whether there is one.
    if (value === "" && setting.kind === "secret") return replace(problem, "Nothing was typed, so nothing is changed.");
    replace(problem);
    try {
      await save(value);
    } catch (error) {
      replace(problem, describeError(error));
    }
  };
  const read = () => (setting.kind === "switch" ? String(field.read()) : String(field.input.value));
  replace(
    body,
    setting.origin === "environment" && h("p.hint", "The environment sets it, and the environment comes before what is set here."),
    problem,
    setting.terminalOnly
      ? [h("p", "It reaches beyond this home, so it is set in a terminal:"), codeBlock(`annabelle config set ${setting.name}`)]
      : [
          field.element,
          h(
            "div.row",
            button("Save", () => send(read()), { className: "primary", "aria-label": `Save ${setting.name}` }),
            setting.origin === "home" && button("Back to the default", () => send(null), { "aria-label": `Put ${setting.name} back to its default` }),
          ),
        ],
  );
}

function fieldOf(setting) {
  const hint = setting.kind === "secret" ? "It is never shown. What you type replaces it." : `Default: ${setting.default || "empty"}`;
  const common = { name: setting.name, label: setting.name, hint };
  if (setting.kind === "switch") return { ...common, kind: "checkbox", value: setting.value === "true", label: `${setting.name} is on` };
  if (setting.kind === "choice") return { ...common, kind: "select", options: setting.choices, value: setting.value };
  return { ...common, kind: setting.kind === "secret" ? "password" : "text", value: setting.value ?? "" };
}
