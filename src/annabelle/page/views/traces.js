// The turns of late, and one of them as a waterfall: what happened when, in which layer, and what it took.
import { get } from "../api.js";
import { badge, button, codeBlock, count, details, h, money, pairs, replace, table, time } from "../dom.js";
import { joinNewest, onNews } from "../live.js";
import { markdown } from "../markdown.js";
import { plotWidth, rowPlot } from "../plot.js";

const PAGE = 50;
const STATES = { done: "good", failed: "bad", running: "wait", queued: "wait" };
const IDS = new Set(["message_id", "call_id", "thread_id", "task_id", "agent_id", "duration_ms"]);
// Servers write no traces of their own: the hub tells how long they took for a call.
const OF_SERVERS = new Set(["tool.finished", "tool.failed"]);
const REASONS = {
  core: "always offered",
  "in use": "named by the message, a playbook or the last turns",
  learned: "learned from how people ask",
  fits: "fits the message",
  "may fit": "may fit the message",
  "named group": "of a group the message names",
  required: "required",
};

export async function render(root, { rest }) {
  const [id] = rest;
  const list = { turns: [], more: true };
  const draw = async () => {
    if (id) drawTrace(root, await get(`/traces/${encodeURIComponent(id)}`));
    else drawTurns(root, (await get("/traces", { limit: PAGE })).turns, list);
  };
  await draw();
  const isRead = () => root.contains(document.activeElement) || root.querySelector("li details[open], .tool[open]");
  return onNews(async () => isRead() || draw(), ["done"]);
}

function drawTurns(root, newest, list) {
  list.turns = joinNewest(newest, list.turns, (one) => one.messageId);
  if (list.turns.length === newest.length) list.more = newest.length === PAGE;
  const more = button("Show older turns", async () => {
    const found = (await get("/traces", { limit: PAGE, before: list.turns.at(-1).position })).turns;
    list.turns.push(...found);
    list.more = found.length === PAGE;
    draw();
  });
  const place = h("div");
  const draw = () => replace(place, turnTable(list.turns), list.more && more);
  draw();
  replace(root, h("h1", "Traces"), h("p", "How each answer came about: prompts, tools, scans, tokens and money."), place);
}

function turnTable(turns) {
  const columns = [
    { label: "When", cell: (one) => time(one.createdAt) },
    { label: "Message", cell: (one) => h("a", { href: `#/traces/${one.traceId}` }, one.text || one.traceId) },
    { label: "State", cell: (one) => badge(one.state, STATES[one.state]) },
    { label: "Agent", cell: (one) => `${one.agentId}, ${one.channel}` },
    { label: "Took", cell: (one) => (one.answeredAt ? duration(new Date(one.answeredAt) - new Date(one.createdAt)) : "–") },
    { label: "Model calls", cell: (one) => count(one.modelCalls) },
    { label: "Tokens", cell: (one) => count(one.inputTokens + one.outputTokens) },
    { label: "Cost", cell: (one) => (one.modelCalls ? money(one.costUsd) : "–") },
  ];
  return table(columns, turns, { caption: "Turns of late", empty: "Nothing was answered yet. Say something in the chat, and how the answer came about is shown here." });
}

function drawTrace(root, trace) {
  const find = (...names) => trace.events.filter((one) => names.includes(one.event));
  const width = plotWidth(root);
  replace(
    root,
    h("h1", "How it came about"),
    h("p", h("a", { href: "#/traces" }, "‹ All turns")),
    saidSection(trace, find("turn.finished")),
    factList(trace, find("model.called", "model.called_aside"), find("tool.finished", "tool.failed")),
    errorSection(trace.events.filter(isError)),
    section("In words", pairs(trace.summary.map((one) => [one.heading, one.text]))),
    section("Waterfall", waterfall(trace)),
    section("Prompt", find("context.built").map((one) => promptPart(one.data, width))),
    section("Tools offered", find("tools.selected").map((one) => offerPart(one.data))),
    section("Compression", compressionPart(find("thinking.done"), find("thinking.summary"), width)),
    section("Model calls", modelTable(find("model.called", "model.called_aside"))),
    section("Tool calls", toolParts(find)),
    section("Scans", scanTable(find("content.scanned"))),
  );
}

/** A part of the page, if there is something in it. On a phone it opens when it is wanted. */
function section(title, ...content) {
  const shown = content.flat(Infinity).filter(Boolean);
  const open = ["Errors", "In words", "Waterfall"].includes(title) || !matchMedia("(max-width: 45rem)").matches;
  return shown.length ? h("section", { "aria-label": title }, details(h("h2", title), shown, { open })) : null;
}

function saidSection(trace, finished) {
  const asked = trace.messages.map((one) =>
    h("article.message.own", h("div.plain", one.text), h("p.hint", time(one.createdAt), " · ", badge(one.state, STATES[one.state]), " · ", h("a", { href: `#/chat/${one.threadId}?at=${one.position}` }, "in the chat"))),
  );
  const answers = finished.map((one) => spoken(one.content["gen_ai.output.messages"])).filter(Boolean);
  return [asked, answers.map((words) => h("article.message.agent", markdown(words)))];
}

function spoken(encoded) {
  if (!encoded) return "";
  const parts = JSON.parse(encoded).flatMap((one) => one.parts ?? []);
  return parts.map((one) => one.content ?? "").join("\n\n");
}

function factList(trace, calls, tools) {
  const sum = (name) => calls.reduce((all, one) => all + (one.data[name] ?? 0), 0);
  const priced = calls.some((one) => typeof one.data.cost_usd === "number");
  const facts = {
    Began: time(trace.beganAt),
    Took: duration(trace.durationMs),
    "Model calls": count(calls.length),
    Tokens: `${count(sum("input_tokens"))} in (${count(sum("cached_tokens"))} cached), ${count(sum("output_tokens"))} out`,
    Cost: calls.length ? money(priced ? sum("cost_usd") : null) : "–",
    "Tool calls": count(tools.length),
  };
  return pairs(Object.entries(facts));
}

function isError({ data }) {
  return Boolean(data.error || data.code || data.is_error) || data.success === false;
}

function errorSection(failed) {
  if (!failed.length) return null;
  // The thinker says why a call failed which the hub has told before.
  const explained = new Set(failed.filter((one) => one.event === "tool.returned").map((one) => one.data.call_id));
  const told = failed.filter((one) => one.event !== "tool.finished" || !explained.has(one.data.call_id));
  const shown = told.map((one) => h("li", h("strong", one.event), " ", brief(one), ` after ${duration(one.offsetMs)}`));
  return section("Errors", h("ul.problem", shown));
}

function layerOf(event) {
  return OF_SERVERS.has(event.event) ? "server" : event.component;
}

function waterfall(trace) {
  const whole = Math.max(trace.durationMs, 1);
  const rows = trace.events.map((one) => {
    const left = Math.min((one.offsetMs / whole) * 100, 99.5);
    const wide = Math.min(Math.max((one.durationMs / whole) * 100, 0.5), 100 - left);
    const layer = layerOf(one);
    const line = [
      h("span.offset", duration(one.offsetMs)),
      h("span.lane", { "aria-hidden": "true" }, h("span", { className: `span ${layer} ${isError(one) ? "failed" : ""}`, style: { left: `${left}%`, width: `${wide}%` } })),
      h("span.what", badge(layer), " ", h("strong", one.event), one.durationMs > 0 && ` ${duration(one.durationMs)}`, isError(one) && [" ", badge("error", "bad")], " ", brief(one)),
    ];
    return h("li", details(line, [codeBlock(one.data), Object.entries(one.content).map(([name, value]) => [h("p.hint", name), codeBlock(value)])]));
  });
  return [
    h("p.hint", "Bars show when something ran: ", ["hub", "thinker", "server"].map((one) => [h("span", { className: `key ${one}` }), `${one} `]), ". Each line opens to its details."),
    h("ol.waterfall", rows),
  ];
}

/** What an event tells at a glance. */
function brief({ event, data }) {
  const tokens = `${count(data.input_tokens)} → ${count(data.output_tokens)} tokens, ${money(data.cost_usd)}`;
  if (event.startsWith("model.called")) return `${data.purpose ? `${data.purpose}: ` : ""}${data.model}, ${tokens}`;
  if (event === "thinking.done") return `${count(data.tokens_before)} → ${count(data.tokens_after)} tokens, ${data.strategy}`;
  if (event === "tools.selected") return `${data.selected} of ${data.total} by ${data.method}`;
  if (event === "content.scanned") return `${data.tool ?? data.server}, ${data.direction}: ${data.verdict}`;
  if (event === "context.built") return `${count(Object.values(data.tokens ?? {}).reduce((all, one) => all + one, 0))} tokens`;
  if (event === "thinking.summary") return `${count(data.tokens_before)} → ${count(data.tokens_after)} tokens in ${count(data.cycles)} cycles`;
  const plain = Object.entries(data).filter(([name, value]) => !IDS.has(name) && value !== null && value !== false && typeof value !== "object");
  return plain.map(([name, value]) => (name === "tool" ? value : `${name.replaceAll("_", " ")}: ${plainValue(name, value)}`)).join(", ");
}

function plainValue(name, value) {
  if (name.endsWith("_usd")) return money(value);
  return Number.isInteger(value) ? count(value) : value === true ? "yes" : value;
}

function promptPart(data, width) {
  const layers = Object.entries(data.tokens ?? {});
  const cut = Object.entries(data.left_out ?? {}).filter(([, value]) => value);
  const told = [
    `${count(data.history_messages)} messages of history${data.history_left_out ? ` (${count(data.history_left_out)} left out)` : ""}`,
    `persona: ${data.persona}`,
    `${count(data.memories)} memories`,
    data.playbooks?.length && `playbooks: ${data.playbooks.join(", ")}`,
    cut.length && `left out: ${cut.map(([name, value]) => `${count(value)} of ${name}`).join(", ")}`,
  ];
  const rows = layers.map(([label, value]) => ({ label, told: `${count(value)} tokens`, parts: [{ value, title: `${label}: ${value} tokens` }] }));
  const columns = [{ label: "Layer", cell: ([name]) => name }, { label: "Tokens", cell: ([, value]) => count(value) }];
  return [h("p", `${told.filter(Boolean).join("; ")}.`), data.trouble && h("p.problem", data.trouble.join(" ")), rows.length && rowPlot(rows, width, "Tokens of each layer of the prompt."), details("As a table", table(columns, layers, { caption: "Layers of the prompt" }))];
}

function offerPart(data) {
  const scores = new Map(data.top ?? []);
  const rows = Object.entries(data.offered ?? {}).map(([name, reason]) => ({ name, reason }));
  for (const name of scores.keys()) if (!data.offered?.[name]) rows.push({ name, reason: null });
  const columns = [
    { label: "Tool", cell: (one) => one.name },
    { label: "Why", cell: (one) => (one.reason ? (REASONS[one.reason] ?? one.reason) : badge("not offered")) },
    { label: "Score", cell: (one) => (scores.has(one.name) ? scores.get(one.name).toFixed(2) : "–") },
  ];
  return [
    h("p", `${count(data.selected)} of ${count(data.total)} tools were offered, chosen by ${data.method}; a score of ${(data.cutoff ?? 0).toFixed(2)} was needed to fit.`),
    table(columns, rows, { caption: "Tools offered, and why" }),
  ];
}

function compressionPart(cycles, whole, width) {
  if (!cycles.length) return null;
  const rows = cycles.map(({ data }) => ({
    label: `Step ${data.step}, ${data.strategy}`,
    told: `${count(data.tokens_before)} → ${count(data.tokens_after)}`,
    parts: [
      { value: data.tokens_before, title: `before: ${data.tokens_before} tokens`, kind: "before" },
      { value: data.tokens_after, title: `after: ${data.tokens_after} tokens`, kind: "" },
    ],
  }));
  const columns = [
    { label: "Step", cell: ({ data }) => data.step },
    { label: "Strategy", cell: ({ data }) => [data.strategy, !data.fresh && data.strategy !== "none" && " (as before)"] },
    { label: "Tokens before", cell: ({ data }) => count(data.tokens_before) },
    { label: "Tokens after", cell: ({ data }) => count(data.tokens_after) },
    { label: "Ratio", cell: ({ data }) => percent(data.ratio) },
    { label: "Overhead", cell: ({ data }) => `${count(data.overhead_tokens)} tokens` },
    { label: "Model calls", cell: ({ data }) => count(data.calls) },
    { label: "Took", cell: (one) => duration(one.durationMs) },
  ];
  const told = whole.map(({ data }) =>
    h("p", `Together: ${count(data.tokens_before)} → ${count(data.tokens_after)} tokens (${percent(data.ratio)}), shortened in ${count(data.shortened)} of ${count(data.cycles)} cycles, ${count(data.recoveries)} recoveries, ${count(data.context_losses)} times something was missed later; the turn ${data.success ? "succeeded" : "failed"}.`),
  );
  return [told, rowPlot(rows, width, "Tokens before and after compression in each cycle."), table(columns, cycles, { caption: "Compression in each cycle" })];
}

function modelTable(calls) {
  if (!calls.length) return null;
  const columns = [
    { label: "For", cell: ({ data }) => data.purpose ?? "answer" },
    { label: "Model", cell: ({ data }) => `${data.provider}/${data.model}` },
    { label: "Tokens in", cell: ({ data }) => [count(data.input_tokens), data.cached_tokens > 0 && ` (${count(data.cached_tokens)} cached)`] },
    { label: "Tokens out", cell: ({ data }) => count(data.output_tokens) },
    { label: "Cost", cell: ({ data }) => money(data.cost_usd) },
    { label: "Took", cell: (one) => (one.durationMs ? duration(one.durationMs) : "–") },
  ];
  return table(columns, calls, { caption: "Model calls" });
}

/** One entry for each call: as the hub made it, or as the thinker did by itself. */
function toolParts(find) {
  const made = find("tool.finished", "tool.failed");
  const known = new Set(made.map((one) => one.data.call_id));
  const all = [...made, ...find("tool.returned").filter((one) => !known.has(one.data.call_id))];
  const about = (event, call) => find(event).filter((one) => call && one.data.call_id === call);
  return all.map((one) => {
    const judged = about("call.judged", one.data.call_id).map(({ data }) => `${data.verdict}${data.order?.length ? `, ordered by “${data.order.join("” and “")}”` : ""}`);
    const scans = about("content.scanned", one.data.call_id).map(({ data }) => `${data.direction} ${data.verdict}`);
    const failed = isError(one) || about("tool.returned", one.data.call_id).some(isError);
    const code = one.data.code ?? about("tool.returned", one.data.call_id).find(isError)?.data.error;
    return details(
      [h("span", { className: `state ${failed ? "failure" : "success"}`, "aria-label": failed ? "failed" : "done" }, failed ? "✗" : "✓"), ` ${one.data.tool}, ${duration(one.durationMs)}`, code && [" ", badge(code, "bad")]],
      [
        judged.length > 0 && h("p", `Policy: ${judged.join("; ")}`),
        scans.length > 0 && h("p", `Scans: ${scans.join("; ")}`),
        block("Arguments", one.content["gen_ai.tool.call.arguments"]),
        block("Result", one.content["gen_ai.tool.call.result"]),
        !one.data.call_id && h("p.hint", "Looked up before the model was asked."),
      ],
      { className: "tool" },
    );
  });
}

function block(title, value) {
  return value ? [h("p.hint", title), codeBlock(value)] : null;
}

function scanTable(scans) {
  if (!scans.length) return null;
  const columns = [
    { label: "What", cell: ({ data }) => data.tool ?? (data.direction === "message" ? "the message" : data.server) },
    { label: "Direction", cell: ({ data }) => ({ input: "given to the tool", output: "returned by the tool", message: "said" })[data.direction] ?? data.direction },
    { label: "Risk", cell: ({ data }) => badge(data.verdict, { none: "good", low: "good", medium: "wait" }[data.verdict] ?? "bad") },
    { label: "Found", cell: ({ data }) => data.threats?.join(", ") || "nothing" },
    { label: "Took", cell: (one) => duration(one.durationMs) },
  ];
  return table(columns, scans, { caption: "Scans of the guardian" });
}

function duration(milliseconds) {
  if (milliseconds >= 60000) return `${Math.floor(milliseconds / 60000)} min ${Math.round((milliseconds % 60000) / 1000)} s`;
  return milliseconds < 1000 ? `${milliseconds.toFixed(1)} ms` : `${(milliseconds / 1000).toFixed(2)} s`;
}

function percent(share) {
  return `${Math.round((share ?? 1) * 100)} %`;
}
