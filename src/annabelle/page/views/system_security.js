// Security: what was refused, asked, found or changed; whether the record of it is whole; and who holds tokens.
import { get, post } from "../api.js";
import { ask, badge, button, details, h, makeField, replace, table, time, toast, valueList } from "../dom.js";

const KINDS = ["tool", "scan", "approval", "rule", "config", "login", "message", "stop", "server", "forget", "audit"];

export async function show(root) {
  const records = h("div");
  const verdict = h("div", { role: "status" });
  const tokens = h("div");
  const which = makeField({
    name: "kind",
    label: "Which records",
    kind: "select",
    options: [{ value: "safety", label: "all that matters for safety" }, ...KINDS, { value: "", label: "everything" }],
    value: "safety",
  });
  const drawRecords = async () => {
    const kind = which.read();
    const found = await get("/audit", { last: 100, ...(kind === "safety" ? { safety: true } : { kind }) });
    replace(records, recordTable(found.records.reverse()));
  };
  const drawTokens = async () => replace(tokens, tokenTable((await get("/sessions/tokens")).tokens, drawTokens));
  const verify = async () => {
    const found = await get("/audit/verify");
    replace(
      verdict,
      h("p", badge(found.intact ? "whole" : "not whole", found.intact ? "good" : "bad"), " ", found.text),
      found.incidents.length > 0 && h("ul", found.incidents.slice(-10).map((one) => h("li", one))),
    );
  };
  which.input.addEventListener("change", () => drawRecords().catch((error) => toast(error.message, "error")));
  await Promise.all([drawRecords(), drawTokens()]);
  replace(
    root,
    h("h2", "Security"),
    h("p", "The audit records what was done and decided: names, numbers and fingerprints, never content. Each record covers the one before, so a change shows."),
    h("div.row", which.element, button("Show again", drawRecords), button("Check the audit", verify)),
    verdict,
    records,
    h("h2", "Tokens"),
    h("p", "Whoever holds one of these acts for you, within its scopes. Browsers that are signed in are called page."),
    tokens,
    h("p.hint", "A new one is made in a terminal: annabelle tokens add NAME --kind device"),
  );
}

function recordTable(rows) {
  const facts = ({ facts: all }) => {
    const shown = Object.entries(all).filter(([name, value]) => typeof value === "string" && value && !/(_id|hash|token)$/.test(name));
    return details(shown.map(([, value]) => value.replaceAll("_", " ")).join(" · ") || "Details", valueList(all));
  };
  const columns = [
    { label: "Time", cell: (one) => time(one.at) },
    { label: "Kind", cell: (one) => badge(one.kind) },
    { label: "What", cell: facts },
  ];
  return table(columns, rows, { caption: "Audit records", empty: "There is no such record." });
}

function tokenTable(rows, redraw) {
  const revoke = (one) => async () => {
    if (!(await ask(`Take back the token ${one.name}?`, [], { yes: "Take it back", danger: true, text: "It is no longer good, and what is open with it ends at once." }))) return;
    await post(`/sessions/tokens/${one.name}/revoke`);
    toast(`The token ${one.name} is no longer good.`);
    await redraw();
  };
  const columns = [
    { label: "Token", cell: (one) => h("code", one.name) },
    { label: "Kind", cell: (one) => one.kind },
    { label: "May", cell: (one) => one.scopes.join(", ") },
    { label: "Last used", cell: (one) => (one.lastUsedAt ? time(one.lastUsedAt) : "never") },
    { label: "Actions", cell: (one) => one.name !== "main" && button("Take back", revoke(one), { className: "danger", "aria-label": `Take back ${one.name}` }) },
  ];
  return table(columns, rows, { caption: "Your tokens" });
}
