// What may be wrong with this install, and what can be done about it.
import { get, post } from "../api.js";
import { badge, button, details, h, replace, time } from "../dom.js";

const COLOURS = { critical: "bad", warning: "wait", info: "", ok: "good" };
// Actions name the commands of a chat; the page has places for them.
const PLACES = { "/status": "overview", "/logs": "logs", "/security": "security" };

export async function show(root) {
  const findings = h("div", { "aria-live": "polite" });
  const done = h("div", { role: "status" });
  const check = async () => {
    const report = await get("/diagnosis", { installation: true });
    const problems = report.findings.filter((one) => one.severity !== "ok");
    const fine = report.findings.filter((one) => one.severity === "ok");
    replace(
      findings,
      h("p", problems.length ? report.text.split("\n")[0] : `All is well: ${fine.length} checks found nothing.`, h("span.hint", " ", time(report.at))),
      problems.map(findingCard),
      details(`Checks that found nothing (${fine.length})`, h("ul", fine.map((one) => h("li", one.check, h("span.hint", ` ${one.category}`))))),
    );
  };
  const fix = async () => {
    const { steps } = await post("/diagnosis/fix");
    replace(done, h("h3", "What was done"), h("ul", steps.map((one) => h("li", badge(one.done ? "done" : "left", one.done ? "good" : ""), " ", one.text))));
    await check();
  };
  const lookAfter = async () => {
    const { text } = await post("/health/run");
    replace(done, h("h3", "Agents"), h("p", text || "No turn hangs, and no task or goal was left behind."));
  };
  await check();
  replace(
    root,
    h("h2", "Diagnosis"),
    h("div.row", button("Check again", check, { className: "primary" }), button("Fix what is safe to fix", fix), button("Look after the agents", lookAfter)),
    h("p.hint", "Fixing makes missing folders and protects files; it deletes nothing. For logs and databases stop Annabelle first, then type annabelle doctor --fix."),
    done,
    findings,
  );
}

function findingCard(found) {
  return h(
    "section.card",
    h("h3", badge(found.severity, COLOURS[found.severity]), " ", found.check, found.subject && h("span.hint", ` ${found.subject}`)),
    h("p", found.text),
    found.action && h("p", "To do: ", found.action.split(/(?<!\S)(\/(?:status|logs|security))\b/).map((part) => (PLACES[part] ? h("a", { href: `#/system/${PLACES[part]}` }, part) : part))),
  );
}
