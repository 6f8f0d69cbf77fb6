// The install itself, for its owner. Each tab is a file of its own that exports `show(root, place)`.
import { get, on, post } from "../api.js";
import { show as showAgain } from "../app.js";
import { badge, button, capitalize, describeError, h, replace, tabs, toast } from "../dom.js";
import * as accounts from "./system_accounts.js";
import * as backup from "./system_backup.js";
import * as diagnosis from "./system_diagnosis.js";
import * as logs from "./system_logs.js";
import * as models from "./system_models.js";
import * as overview from "./system_overview.js";
import * as security from "./system_security.js";
import * as servers from "./system_servers.js";
import * as settings from "./system_settings.js";

const TABS = { overview, servers, models, accounts, security, diagnosis, settings, backup, logs };

export async function render(root, place) {
  const name = Object.hasOwn(TABS, place.rest[0]) ? place.rest[0] : "overview";
  const links = Object.keys(TABS).map((one) => [`#/system/${one}`, capitalize(one), one === name]);
  const body = h("div", h("p.empty", { role: "status" }, "Loading …"));
  replace(root, h("h1", "System"), tabs("Parts of the system", links), body);
  try {
    return await TABS[name].show(body, { ...place, rest: place.rest.slice(1) });
  } catch (error) {
    replace(body, h("p.problem", { role: "alert" }, describeError(error)));
    return on("back", showAgain);
  }
}

/** Repeats `work` while the tab is looked at, each time after the last has ended. Returns what ends it. */
export function poll(seconds, work) {
  let busy = false;
  const timer = setInterval(async () => {
    if (busy || document.hidden) return;
    busy = true;
    await work().catch(() => {});
    busy = false;
  }, seconds * 1000);
  return () => clearInterval(timer);
}

/** What counts from the next start, with the button for it. */
export function restartNeeded(text) {
  return h("p.row", badge("restart needed", "wait"), text, button("Restart now", () => restart(), { className: "primary" }));
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
