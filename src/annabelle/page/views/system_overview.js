// What runs, what is worth knowing, and who may speak in which chat app.
import { get, post } from "../api.js";
import { ask, badge, button, count, h, replace, svg, table, time, toast } from "../dom.js";
import { drawChanged } from "../live.js";
import { poll } from "./system.js";

const LEVELS = { error: "bad", warning: "wait", info: "" };

export async function show(root) {
  const parts = { status: h("div"), agents: h("div"), channels: h("div") };
  const pairing = h("div", { role: "status" });
  const pair = { shown: null };
  const draw = async () => {
    const [status, channels] = await Promise.all([get("/status"), get("/channels")]);
    if (pair.shown && channels.accounts.length > pair.before) endPairing();
    const ready = status.servers.filter((one) => one.available).length;
    drawChanged(parts.status, { ...status, uptimeSeconds: 0, agents: [], servers: ready }, () => statusPart(status, ready));
    drawChanged(parts.agents, status.agents, () => agentsPart(status.agents, draw));
    drawChanged(parts.channels, channels, () => channelsPart(channels, startPairing, draw));
  };
  const startPairing = async (channel) => {
    const [made, { accounts }] = await Promise.all([post(`/channels/${channel.name}/pair`), get("/channels")]);
    Object.assign(pair, { shown: true, before: accounts.length });
    replace(pairing, pairingCard(made, endPairing));
  };
  const endPairing = () => {
    pair.shown = null;
    replace(pairing);
  };
  await draw();
  replace(root, h("h2", "Overview"), parts.status, h("h2", "Agents"), parts.agents, h("h2", "Chat apps"), parts.channels, pairing);
  return poll(2, draw);
}

function statusPart(status, ready) {
  return [
    h("p", badge(status.status, status.status === "ready" ? "good" : "wait"), ` Annabelle ${status.version} at ${status.address}, since `, time(status.startedAt), "."),
    h("p", `${status.toolCount} tools on `, h("a", { href: "#/system/servers" }, `${ready} of ${status.servers.length} servers`), `; ${status.turnsRunning} turns are running; process ${status.pid}.`),
    status.notices.length > 0 && h("h3", "Notices"),
    [...status.notices].reverse().map((one) => h("div.line", badge(one.level, LEVELS[one.level]), " ", one.text, h("span.hint", " ", time(one.at)))),
  ];
}

function describeAgent(agent) {
  if (agent.stopped) return ["stopped", "bad"];
  if (agent.paused) return [`paused: ${agent.pauseReason}`, "wait"];
  if (!agent.enabled) return ["switched off", ""];
  if (agent.flapping) return ["keeps failing", "bad"];
  if (agent.state === "stopped") return ["ready, starts with its next message", "good"];
  return [agent.turns ? `${agent.state}, answering ${agent.turns}` : agent.state, "good"];
}

function agentsPart(agents, redraw) {
  return agents.map((agent) => {
    const [state, colour] = describeAgent(agent);
    const model = [agent.llmProvider, agent.model].filter(Boolean).join(":") || "chosen automatically";
    const act = (label, work) => button(label, async () => (await work(), redraw()), { "aria-label": `${label} ${agent.agentId}` });
    const path = `/agents/${agent.agentId}`;
    const pause = async () => {
      const given = await ask(`Pause ${agent.agentId}?`, [{ name: "reason", label: "Reason", value: "paused by its owner", hint: "Whoever writes to it is told." }], { yes: "Pause" });
      if (given) await post(`${path}/pause`, given);
    };
    const resume = () => (agent.stopped ? post("/resume", { target: agent.agentId }) : post(`${path}/resume`, {}));
    const restart = async () => {
      await post(`${path}/restart`);
      toast(`${agent.agentId} was restarted.`);
    };
    return h(
      "section.card",
      { data: { agent: agent.agentId } },
      h("h3", agent.agentId, " ", badge(state, colour)),
      h("p.hint", `Model ${model} · ${count(agent.costs.currentHourTokens)} of ${count(agent.costs.hardCap)} tokens this hour · restarts: ${agent.restartCount}`, agent.lastActivityAt && [" · last active ", time(agent.lastActivityAt)]),
      !agent.isSubagent && h("div.row", agent.paused || agent.stopped ? act("Resume", resume) : act("Pause", pause), act("Restart", restart)),
    );
  });
}

function channelsPart({ channels, accounts }, startPairing, redraw) {
  if (!channels.length) return h("p.empty", "No chat app is set up. With the token of your own bot, Annabelle is in Telegram: ", h("a", { href: "#/system/settings?search=TELEGRAM_BOT_TOKEN" }, "TELEGRAM_BOT_TOKEN"), ".");
  const remove = (one) => async () => {
    if (!(await ask(`Take back ${one.name || one.accountId}?`, [], { yes: "Take it back", danger: true, text: "It is a stranger again, and is not answered any more." }))) return;
    await post(`/channels/${one.channel}/accounts/${encodeURIComponent(one.accountId)}/delete`);
    await redraw();
  };
  const channelColumns = [
    { label: "Chat app", cell: (one) => one.name },
    { label: "Annabelle's name there", cell: (one) => one.account },
    { label: "State", cell: (one) => [badge(one.state, one.trouble ? "bad" : "good"), one.trouble && h("div.problem", one.trouble)] },
    { label: "Strangers ignored", cell: (one) => String(one.ignored) },
    { label: "Actions", cell: (one) => button("Pair an account", () => startPairing(one), { "aria-label": `Pair an account in ${one.name}` }) },
  ];
  const accountColumns = [
    { label: "Account", cell: (one) => [one.name, " ", h("code", one.accountId)] },
    { label: "Chat app", cell: (one) => one.channel },
    { label: "Speaks as", cell: (one) => one.userId },
    { label: "Since", cell: (one) => time(one.createdAt) },
    { label: "Actions", cell: (one) => button("Take back", remove(one), { className: "danger", "aria-label": `Take back ${one.accountId}` }) },
  ];
  return [
    table(channelColumns, channels, { caption: "Chat apps" }),
    h("h3", "Who may speak there"),
    table(accountColumns, accounts, { caption: "Accounts that are answered", empty: "Nobody is paired, so nobody is answered. Pair an account first." }),
  ];
}

function pairingCard(made, close) {
  const size = made.qr.length + 8;
  const cells = made.qr.flatMap((row, y) => [...row].flatMap((cell, x) => (cell === "1" ? [`M${x + 4} ${y + 4}h1v1h-1z`] : [])));
  return h(
    "section.card.question",
    h("h3", "Pair an account"),
    h("p", `Send this to ${made.account || "Annabelle"}: /start `, h("code", { data: { code: "" } }, made.code)),
    made.invite && h("p", "Or open ", h("a", { href: made.invite, target: "_blank", rel: "noopener noreferrer" }, made.invite)),
    size > 8 && svg("svg", { viewBox: `0 0 ${size} ${size}`, class: "qr", role: "img", "aria-label": "QR code of this address" }, svg("rect", { width: size, height: size, fill: "#fff" }), svg("path", { d: cells.join(""), fill: "#000" })),
    h("p.hint", "It can be used once, until ", time(made.expiresAt, "clock"), "."),
    button("Close", async () => close()),
  );
}
