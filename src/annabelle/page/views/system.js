// The install itself, for its owner. Each tab is a file of its own that exports `show(root, place)`.
import { get, on, post } from "../api.js";
import { load, show as showAgain } from "../app.js";
import { badge, button, describeError, h, replace, toast } from "../dom.js";

const TABS = {
  overview: "Overview",
  servers: "Servers",
  models: "Models",
  accounts: "Accounts",
  security: "Security",
  diagnosis: "Diagnosis",
  settings: "Settings",
  backup: "Backup",
  logs: "Logs",
};
let clicked = false;

export async function render(root, place) {
  const name = Object.hasOwn(TABS, place.rest[0]) ? place.rest[0] : "overview";
  const links = Object.entries(TABS).map(([one, title]) =>
    h("a", { href: `#/system/${one}`, "aria-current": one === name && "page", onclick: () => (clicked = true) }, title),
  );
  const body = h("div", {}, h("p", { className: "empty", role: "status" }, "Loading …"));
  replace(root, h("h1", {}, "System"), h("nav", { className: "tabs", "aria-label": "Parts of the system" }, links), body);
  // The view is drawn again with each tab, so the link that was pressed is another one now.
  if (clicked) root.querySelector(".tabs [aria-current]").focus();
  clicked = false;
  try {
    const { show } = await load(`system_${name}`);
    return await show(body, { ...place, rest: place.rest.slice(1) });
  } catch (error) {
    replace(body, h("p", { className: "problem", role: "alert" }, describeError(error)));
    return on("back", showAgain);
  }
}

/** Repeats `work` while the tab is looked at. Returns what ends it. */
export function poll(seconds, work) {
  const timer = setInterval(() => document.hidden || work().catch(() => {}), seconds * 1000);
  return () => clearInterval(timer);
}

/** What counts from the next start, with the button for it. */
export function restartNeeded(text) {
  return h("p", { className: "row" }, badge("restart needed", "wait"), text, button("Restart now", () => restart(), { className: "primary" }));
}

/** Starts the hub again, with what `path` does first, and the page with it. */
export async function restart(path = "/restart") {
  const before = (await get("/health")).startedAt;
  await post(path);
  toast("Annabelle restarts. This takes a few seconds.");
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 300));
    const now = await get("/health").catch(() => ({ startedAt: before }));
    if (now.startedAt !== before && now.phase === "ready") return location.reload();
  }
}
