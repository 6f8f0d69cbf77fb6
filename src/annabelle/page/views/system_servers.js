// Servers: how they are, what they can do, and the word of the owner on those that were added.
import { get, post } from "../api.js";
import { ask, badge, button, codeBlock, details, h, replace, time, toast, toolSentence } from "../dom.js";
import { drawRows } from "../live.js";
import { poll } from "./system.js";

const HELD = ["waiting", "quarantined", "rejected"];
const COLOURS = { ready: "good", down: "bad", quarantined: "bad", rejected: "bad", waiting: "wait", starting: "wait", restarting: "wait" };

export async function show(root) {
  const list = h("div");
  const draw = async () => {
    const { servers } = await get("/servers");
    servers.sort((one, other) => HELD.includes(other.state) - HELD.includes(one.state));
    drawRows(list, servers, (one) => one.name, (one) => serverCard(one, draw));
  };
  await draw();
  replace(
    root,
    h("h2", "Servers"),
    h("p", "Each server brings tools. Servers you add yourself, in config/external-mcps.json of the home, wait for your yes."),
    list,
  );
  return poll(3, draw);
}

function serverCard(server, redraw) {
  const body = h("div");
  const card = details(
    [h("strong", server.name), " ", badge(stateOf(server), server.missing ? "wait" : COLOURS[server.state]), h("span.hint", ` ${server.label} · ${server.tools} tools`)],
    body,
    { className: `card${HELD.includes(server.state) ? " question" : ""}`, data: { server: server.name } },
  );
  const fill = () => card.open && !body.childElementCount && fillCard(body, server, redraw);
  card.addEventListener("toggle", fill);
  card.open = HELD.includes(server.state);
  return card;
}

function stateOf(server) {
  return server.missing && server.available ? "incomplete" : server.state;
}

function fillCard(body, server, redraw) {
  const held = HELD.includes(server.state);
  const facts = [
    server.kind === "builtin" ? "comes with Annabelle" : "added by you",
    server.pid && `process ${server.pid}`,
    server.restarts && `restarts: ${server.restarts}`,
    server.protocol && `protocol ${server.protocol}`,
  ];
  const review = h("div");
  const tools = h("div");
  const restart = async () => {
    const now = await post(`/servers/${server.name}/restart`);
    toast(`${server.name} ${now.available ? "runs again" : "does not run"}.`, now.available ? "info" : "error");
    await redraw();
  };
  replace(
    body,
    server.missing && h("p", server.missing),
    server.lastError && !held && h("p.problem", server.lastError),
    h("p.hint", facts.filter(Boolean).join(" · "), server.startedAt && [" · since ", time(server.startedAt)]),
    review,
    tools,
    h(
      "div.row",
      !held && button("Restart", restart, { "aria-label": `Restart ${server.name}` }),
      h("a.button", { href: `#/system/logs/${server.name}` }, "Log"),
    ),
  );
  if (server.kind !== "builtin") drawReview(review, server, redraw).catch((error) => replace(review, h("p.problem", error.message)));
  if (server.available) drawTools(tools, server.name).catch((error) => replace(tools, h("p.problem", error.message)));
}

async function drawTools(place, name) {
  const found = (await get("/tools/list")).tools.filter((one) => one.server === name);
  replace(
    place,
    details(
      `Tools (${found.length})`,
      h("ul", found.map((one) => h("li", h("code", one.name), " ", one.annotations.read_only && badge("only reads"), " ", toolSentence(one.description)))),
    ),
  );
}

/** What an added server is, and yes or no to exactly that. */
async function drawReview(place, server, redraw) {
  const found = await get(`/servers/${server.name}`);
  const accept = async () => {
    const now = await post(`/servers/${server.name}/accept`, { digest: found.digest });
    toast(now.available ? `${server.name} runs, with ${now.tools} tools. A change in it will be held back.` : `${server.name} is accepted and does not run yet.`);
    await redraw();
  };
  const reject = async () => {
    if (!(await ask(`Reject ${server.name}?`, [], { yes: "Reject", danger: true, text: "It stops, and does not start again before a yes." }))) return;
    await post(`/servers/${server.name}/reject`);
    await redraw();
  };
  replace(
    place,
    found.held && h("p", "It is held back: ", found.why),
    found.diff && [h("h3", server.state === "quarantined" ? "What has changed since you accepted it" : "What you would accept"), diffBlock(found.diff)],
    details("What it is", codeBlock([...found.entry, "", ...found.server].join("\n"))),
    h(
      "div.row",
      found.held && button("Accept", accept, { className: "primary", "aria-label": `Accept ${server.name}` }),
      found.held !== "rejected" && button("Reject", reject, { className: "danger", "aria-label": `Reject ${server.name}` }),
    ),
  );
}

function diffBlock(text) {
  const kind = (line) => (/^(---|\+\+\+|@@)/.test(line) ? "hint" : { "+": "added", "-": "removed" }[line[0]] ?? "");
  return h("pre.code.diff", { tabIndex: 0 }, text.split("\n").map((line) => h("span", { className: kind(line) }, `${line}\n`)));
}
