// The install itself, for its owner. Each tab is a file of its own that exports `show(root, place)`.
import { describeError, h, replace } from "../dom.js";

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

export async function render(root, place) {
  const name = Object.hasOwn(TABS, place.rest[0]) ? place.rest[0] : "overview";
  const links = Object.entries(TABS).map(([one, title]) =>
    h("a", { href: `#/system/${one}`, "aria-current": one === name && "page" }, title),
  );
  const body = h("div", {}, h("p", { className: "empty", role: "status" }, "Loading …"));
  replace(root, h("h1", {}, "System"), h("nav", { className: "tabs", "aria-label": "Parts of the system" }, links), body);
  try {
    const { show } = await import(`./system_${name}.js`);
    return await show(body, { ...place, rest: place.rest.slice(1) });
  } catch (error) {
    replace(body, h("p", { className: "problem", role: "alert" }, describeError(error)));
  }
}

/** Repeats `work` while the tab is looked at. Returns what ends it. */
export function poll(seconds, work) {
  const timer = setInterval(() => document.hidden || work().catch(() => {}), seconds * 1000);
  return () => clearInterval(timer);
}
