// Models: which one is used for what, and choosing, fetching and testing another.
import { get, post } from "../api.js";
import { askUntilDone, badge, button, bytes, details, h, makeField, replace, table, toast } from "../dom.js";
import { poll, restartNeeded } from "./system.js";

export async function show(root) {
  const downloads = h("div");
  const body = h("div");
  let running = false;
  const draw = async () => {
    const found = await get("/models");
    drawDownloads(downloads, found.downloads, draw);
    replace(body, answering(found), options(found.options, draw), uses(found.uses));
    running = found.downloads.some((one) => one.state === "running");
  };
  // Only the bars move while something is fetched: somebody may be typing below.
  const follow = async () => {
    if (!running) return;
    const found = await get("/models");
    running = found.downloads.some((one) => one.state === "running");
    if (running) drawDownloads(downloads, found.downloads, draw);
    else await draw();
  };
  await draw();
  replace(root, h("h2", "Models"), body, downloads, ownModel(draw));
  return poll(1, follow);
}

function answering(found) {
  return [
    h("p", badge(found.works ? "answers" : "trouble", found.works ? "good" : "bad"), " ", found.answering),
    found.afterRestart && restartNeeded(`After the next start: ${found.afterRestart}`),
  ];
}

function uses(rows) {
  const change = (one) => h("a", { href: `#/system/settings?search=${one.setting}`, "aria-label": `Change ${one.setting}` }, one.setting);
  const columns = [
    { label: "Used for", cell: (one) => one.purpose },
    { label: "Model", cell: (one) => h("code", one.model) },
    { label: "Setting", cell: change },
  ];
  return details("Which model is used for what", table(columns, rows, { caption: "Models and what they are used for" }));
}

function options(rows, redraw) {
  const columns = [
    { label: "Model", cell: (one) => h("code", one.name) },
    { label: "State", cell: (one) => [badge(one.state, one.state === "ready" ? "good" : ""), one.size && one.state === "to pull" ? ` ${bytes(one.size)}` : "", one.setting && h("div.hint", one.setting)] },
    { label: "Note", cell: (one) => one.note },
    { label: "Actions", cell: (one) => h("div.row", actions(one, redraw)) },
  ];
  return [
    h("h3", "Models to choose from"),
    h("div.row", button("Let Annabelle choose", () => use("auto", null, redraw)), h("span.hint", "A choice counts from the next start.")),
    table(columns, rows, { caption: "Models to choose from" }),
  ];
}

function actions(one, redraw) {
  const named = (verb) => ({ "aria-label": `${verb} ${one.name}` });
  if (one.state === "to pull") return button("Fetch", () => pull({ name: one.name }, redraw), named("Fetch"));
  if (one.state === "not installed") return null;
  if (one.setting.endsWith("_KEY")) return button("Give a key …", () => giveKey(one, redraw), named("Give a key for"));
  if (one.setting) return h("a.button", { href: `#/system/settings?search=${one.setting}` }, "Set its address");
  return [button("Use", () => use(one.name, null, redraw), named("Use")), button("Test", () => test(one.name), named("Test"))];
}

async function use(name, key, redraw) {
  const made = await post("/models/use", { name, key });
  toast([made.key, made.text, made.overridden.length && `The environment sets ${made.overridden.join(" and ")}, and comes first.`].filter(Boolean).join(" "));
  await redraw();
}

function giveKey(one, redraw) {
  const fields = [{ name: "key", label: one.setting, kind: "password", required: true, hint: "It is tried first, kept in the home and never shown." }];
  return askUntilDone(`A key for ${one.note}`, fields, { yes: "Keep it and use this model" }, ({ key }) => use(one.name.split(":")[0], key, redraw));
}

async function test(name) {
  const found = await post("/models/test", { name });
  toast(found.text, found.works ? "info" : "error");
}

async function pull(wanted, redraw) {
  await post("/models/pull", wanted);
  toast(`${wanted.name} is being fetched.`);
  await redraw();
}

function drawDownloads(place, rows, redraw) {
  const stop = (one) => async () => {
    await post("/models/pull/cancel", { name: one.name });
    toast("What is here is kept: fetching it again goes on with it.");
    await redraw();
  };
  const bar = (one) => h("div.bar", { role: "progressbar", "aria-label": `Fetching ${one.name}`, "aria-valuenow": one.done, "aria-valuemin": 0, "aria-valuemax": one.total }, h("div", { style: { width: `${(100 * one.done) / one.total}%` } }));
  replace(
    place,
    rows.length > 0 && h("h3", "Fetched"),
    rows.map((one) =>
      h(
        "div.card",
        { data: { download: one.name } },
        h("div.row", h("code", one.name), badge(one.state, { done: "good", failed: "bad", running: "wait" }[one.state]), ` ${bytes(one.done)}${one.total ? ` of ${bytes(one.total)}` : ""}`, one.state === "running" && button("Stop", stop(one), { "aria-label": `Stop fetching ${one.name}` })),
        one.problem && h("p.problem", one.problem),
        one.state === "running" && one.total > 0 && bar(one),
      ),
    ),
  );
}

function ownModel(redraw) {
  const fields = [
    makeField({ name: "name", label: "Name", hint: "A short name in lower case, or ollama: and a name that Ollama knows." }),
    makeField({ name: "url", label: "Address of a GGUF file", kind: "url", hint: "Not for Ollama." }),
    makeField({ name: "sha256", label: "SHA-256 of the file", hint: "Only if its server does not state one." }),
  ];
  const fetch = () => pull(Object.fromEntries(fields.map((one) => [one.name, one.read().trim() || null])), redraw);
  return details("Fetch a model that is not in the list", [fields.map((one) => one.element), button("Fetch", fetch)]);
}
