// The first visit: a model, who you are, your accounts. Every step can be left out and done later.
import { get, post } from "../api.js";
import { button, describeError, h, makeField, replace, toast } from "../dom.js";
import { restart } from "./system.js";
import { show as showModels } from "./system_models.js";

const ABOUT = [
  { name: "USER_NAME", label: "What Annabelle calls you" },
  { name: "USER_TIMEZONE", label: "Your time zone, as in Europe/Berlin" },
  { name: "USER_LANGUAGE", label: "The language it answers in, as in German; empty for that of each message" },
];
const TO_TRY = ["what files do I have?", "put oat milk on my shopping list", "remember that my dog is called Rex"];

export async function render(root) {
  const models = h("div");
  const { settings } = await get("/settings");
  const known = new Map(settings.map((one) => [one.name, one]));
  const fields = ABOUT.map((one) => makeField({ ...one, value: suggest(known.get(one.name)) }));
  const keep = async (changed) => {
    for (const one of changed) {
      await post("/settings", { name: one.name, value: one.read().trim() });
      one.before = one.read();
    }
  };
  const save = async () => {
    await keep(fields.filter((one) => one.read().trim() !== (known.get(one.name).value ?? "")));
    toast("Kept. It counts from the next start.");
  };
  const begin = async (first) => {
    // What was typed is meant, also without a press of Keep. What the hub refuses holds nobody up.
    const typed = fields.filter((one) => one.read() !== one.before);
    await keep(typed).catch((error) => toast(describeError(error), "error"));
    localStorage.setItem("annabelle-set-up", "done");
    location.hash = "#/chat";
    await first?.();
  };
  replace(
    root,
    h("h1", "Welcome to Annabelle"),
    h("p", "Three steps, each of which can be left out. Nothing is final: all of it is under System."),
    h("section.card", h("h2", "About you"), fields.map((one) => one.element), button("Keep", save, { className: "primary" })),
    h("section.card", models),
    h("section.card", h("h2", "Your accounts"), h("p", h("a", { href: "#/system/accounts" }, "Connect mail, calendar and chat apps"), " now or later.")),
    h(
      "section.card",
      h("h2", "Begin"),
      h("p", "What you chose counts from the next start. Then say, for example:"),
      h("ul", TO_TRY.map((one) => h("li", one))),
      h("div.row", button("Restart, then to the chat", () => begin(restart), { className: "primary" }), button("To the chat", () => begin())),
    ),
  );
  return showModels(models);
}

/** What the browser knows is offered where nothing was chosen. */
function suggest(setting) {
  if (setting.isSet || setting.name !== "USER_TIMEZONE") return setting.value ?? "";
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}
