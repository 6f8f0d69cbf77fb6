// What was spent on what, the budgets, and what is paused because of it.
import { get, hubNow, post } from "../api.js";
import { ask, askUntilDone, badge, button, count, details, h, money, onlyChanged, section, table, tabs, time, toast } from "../dom.js";
import { onNews, redraw } from "../live.js";
import { columnPlot, plotWidth, rowPlot } from "../plot.js";

const GROUPS = { day: "Day", model: "Model", agent: "Agent", goal: "Goal", purpose: "Purpose", user: "Person" };
const MEASURES = { money: "Money", tokens: "Tokens" };
const RANGES = [30, 90, 365];
const MOST_ROWS = 20;
const DAY = 24 * 60 * 60 * 1000;

export async function render(root, place) {
  const asked = {
    by: GROUPS[place.query.get("by")] ? place.query.get("by") : "day",
    show: MEASURES[place.query.get("show")] ? place.query.get("show") : "money",
    days: RANGES.find((one) => String(one) === place.query.get("days")) ?? RANGES[0],
  };
  const draw = async () => {
    const [spent, models, budgets, { agents }] = await Promise.all([
      get("/costs", { by: asked.by, everyone: true }),
      get("/costs", { by: "model", everyone: true }),
      get("/costs/budget"),
      get("/agents"),
    ]);
    const own = agents.filter((one) => !one.isSubagent);
    const views = await Promise.all(own.map((one) => get(`/agents/${one.agentId}`, { last: 1 })));
    redraw(
      root,
      h("h1", "Costs"),
      budgetSection(budgets, draw),
      agentSection(views, draw),
      spentSection(root, spent.totals, asked),
      unpricedSection(models.totals),
    );
  };
  await draw();
  return onNews(draw, ["done"]);
}

function budgetSection(budgets, draw) {
  return section(
    "Budgets",
    h("div.grid", budgetCard("Today", budgets.day, budgets.warningShare), budgetCard("This month", budgets.month, budgets.warningShare)),
    h("p.hint", "A call that could pass a budget is not made. Days and months are those of UTC."),
    button("Change budgets …", () => changeBudgets(budgets, draw)),
  );
}

function budgetCard(title, budget, warning) {
  const used = budget.spentUsd + budget.heldBackUsd;
  const held = budget.heldBackUsd ? `, ${money(budget.heldBackUsd)} held back for calls that run` : "";
  const told = `${money(budget.spentUsd)} spent${held}`;
  if (budget.capUsd === null) return h("div.card", h("h3", title), h("p", `${told}; no budget is set.`));
  const share = (value) => `${budget.capUsd ? Math.min((value / budget.capUsd) * 100, 100) : 100}%`;
  const near = used >= budget.capUsd * warning;
  const meter = { role: "meter", "aria-label": title, "aria-valuemin": 0, "aria-valuemax": budget.capUsd, "aria-valuenow": Math.min(used, budget.capUsd), "aria-valuetext": `${told} of ${money(budget.capUsd)}` };
  return h(
    "div.card",
    h("h3", title, " ", near && badge(used >= budget.capUsd ? "used up" : "nearly used up", used >= budget.capUsd ? "bad" : "wait")),
    h("div", { className: `bar two ${near ? "over" : ""}`, ...meter }, h("div", { style: { width: share(budget.spentUsd) } }), h("div.held", { style: { width: share(budget.heldBackUsd) } })),
    h("p", `${told}; ${money(budget.leftUsd)} of ${money(budget.capUsd)} is left.`),
    h("p.hint", "Resets ", time(budget.resetsAt), budget.warnedAt && [" · you were told ", time(budget.warnedAt)]),
  );
}

function changeBudgets(budgets, draw) {
  const field = (name, label, { capUsd }) => ({ name, label, value: String(capUsd ?? ""), hint: "US dollars; empty for none" });
  const fields = [field("dayUsd", "The most a day may cost", budgets.day), field("monthUsd", "The most a month may cost", budgets.month)];
  return askUntilDone("Change budgets", fields, { yes: "Save" }, async (given) => {
    const changed = Object.entries(onlyChanged(fields, given)).map(([name, value]) => [name, parseAmount(value)]);
    await post("/costs/budget", Object.fromEntries(changed));
    toast("The budgets are changed.");
    await draw();
  });
}

function parseAmount(value) {
  const text = String(value).trim().replace(/^\$/, "").replace(",", ".");
  if (!text) return null;
  if (!/^\d+(\.\d+)?$/.test(text)) throw new Error(`“${value}” is no amount of money. Write it as 2.50.`);
  return Number(text);
}

function agentSection(views, draw) {
  const held = views.filter((one) => one.agent.paused || one.backgroundPause);
  const columns = [
    { label: "Agent", cell: ({ agent }) => [agent.agentId, " ", agent.paused ? badge("paused", "bad") : agent.stopped ? badge("stopped", "bad") : null] },
    { label: "Today", cell: (one) => `${money(one.costTodayUsd)}, ${count(one.callsToday)} calls` },
    { label: "Tokens within the hour", cell: ({ agent }) => pace(agent.costs) },
    { label: "Pace", cell: ({ agent: { costs } }) => `${count(Math.round(costs.shortWindowTokensPerMinute))} a minute, usually ${count(Math.round(costs.baselineTokensPerMinute))}` },
  ];
  return section(
    "Agents",
    held.length ? held.map((one) => pausedCard(one, draw)) : h("p.hint", "None is paused. One that uses too many tokens within an hour, or suddenly far more than usual, is."),
    table(columns, views, { caption: "How fast the agents spend" }),
  );
}

function pace(costs) {
  const share = `${Math.min((costs.currentHourTokens / (costs.hardCap || 1)) * 100, 100)}%`;
  const told = costs.enabled ? `${count(costs.currentHourTokens)} of ${count(costs.hardCap)}` : `${count(costs.currentHourTokens)}, not limited`;
  return [told, costs.enabled && h("div.bar", { "aria-hidden": "true" }, h("div", { style: { width: share } }))];
}

function pausedCard({ agent, backgroundPause }, draw) {
  const resume = async () => {
    const fields = [{ name: "resetWindow", label: "Forget what was spent within the hour, so that it is not paused again at once", kind: "checkbox", value: true }];
    const given = await ask(`Let ${agent.agentId} go on?`, fields, { yes: "Let it go on" });
    if (!given) return;
    await post(`/agents/${agent.agentId}/resume`, given);
    toast(`${agent.agentId} goes on.`);
    await draw();
  };
  return h(
    "div.card.question",
    h("h3", agent.agentId, " ", badge(agent.paused ? "paused" : "paused in the background", "bad")),
    agent.paused && h("p", sentence(agent.pauseReason), agent.pausedAt && [" Since ", time(agent.pausedAt), "."]),
    backgroundPause && h("p", "What it does by itself: ", sentence(backgroundPause)),
    button(`Let ${agent.agentId} go on …`, resume, { className: "primary" }),
  );
}

function sentence(reason) {
  return (reason ?? "No reason was given").replace(/[.]?$/, ".");
}

function spentSection(root, totals, asked) {
  const to = (change) => `#/costs?${new URLSearchParams({ ...asked, ...change })}`;
  const link = (change, words, here) => h("a", { href: to(change), "aria-current": here && "true" }, words);
  return section(
    "What was spent",
    tabs("Added up by", Object.entries(GROUPS).map(([by, words]) => [to({ by }), `By ${words.toLowerCase()}`, by === asked.by])),
    h(
      "nav.row.choices",
      { "aria-label": "What the plot shows" },
      Object.entries(MEASURES).map(([show, words]) => link({ show }, words, show === asked.show)),
      asked.by === "day" && RANGES.map((days) => link({ days }, `${days} days`, days === asked.days)),
    ),
    totals.length ? figures(root, totals, asked) : h("p.empty", "No model was asked yet. Say something in the chat, and what it costs is shown here."),
  );
}

/** The plot and the table of the same rows, with their sum. */
function figures(root, totals, asked) {
  const width = plotWidth(root);
  const keys = lastDays(asked.days);
  const shown = asked.by === "day" ? totals.filter((one) => one.key >= keys[0]) : totals;
  const sum = (name) => shown.reduce((all, one) => all + (one[name] ?? 0), 0);
  const priced = shown.some((one) => one.costUsd !== null);
  return [
    h("p", `Together ${money(priced ? sum("costUsd") : null)} for ${count(sum("calls"))} calls with ${count(sum("inputTokens"))} tokens in and ${count(sum("outputTokens"))} out.`),
    asked.by === "day" ? dayPlot(shown, keys, asked, width) : groupPlot(shown, asked, width),
    details("As a table", spentTable(shown, asked.by), { open: root.querySelector("section > details")?.open ?? !matchMedia("(max-width: 45rem)").matches }),
  ];
}

function lastDays(days) {
  return Array.from({ length: days }, (_, place) => new Date(hubNow() - (days - 1 - place) * DAY).toISOString().slice(0, 10));
}

function measure(total, show) {
  return show === "money" ? (total?.costUsd ?? 0) : (total?.inputTokens ?? 0) + (total?.outputTokens ?? 0);
}

function formatAs(show) {
  return (value) => (show === "money" ? money(value) : count(Math.round(value)));
}

function dayPlot(totals, keys, { show }, width) {
  const format = formatAs(show);
  const known = new Map(totals.map((one) => [one.key, measure(one, show)]));
  const columns = keys.map((key) => ({ label: key, value: known.get(key) ?? 0, title: `${key}: ${format(known.get(key) ?? 0)}` }));
  return columnPlot(columns, width, `${MEASURES[show]} by day.`, format);
}

function groupPlot(totals, { by, show }, width) {
  const format = formatAs(show);
  const largest = totals.toSorted((one, other) => measure(other, show) - measure(one, show)).slice(0, MOST_ROWS);
  const rows = largest.map((one) => {
    const [label, value] = [nameOf(one, by), measure(one, show)];
    return { label, told: format(value), parts: [{ value, title: `${label}: ${format(value)}` }] };
  });
  return rowPlot(rows, width, `${MEASURES[show]} by ${GROUPS[by].toLowerCase()}.`);
}

function nameOf(total, by) {
  return total.title || total.key || (by === "goal" ? "No goal" : "None");
}

function spentTable(totals, by) {
  const rows = by === "day" ? totals.toReversed() : totals;
  const name = (one) => (by === "goal" && one.title ? h("a", { href: `#/goals/${encodeURIComponent(one.key)}` }, one.title) : nameOf(one, by));
  const columns = [
    { label: GROUPS[by], cell: name },
    { label: "Cost", cell: (one) => [money(one.costUsd), one.unpriced > 0 && h("span", { title: "Some prices are not known" }, " *")] },
    { label: "Calls", cell: (one) => [count(one.calls), one.open > 0 && ` (${count(one.open)} running)`] },
    { label: "Tokens in", cell: (one) => [count(one.inputTokens), one.cachedTokens > 0 && ` (${count(one.cachedTokens)} cached)`] },
    { label: "Tokens out", cell: (one) => count(one.outputTokens) },
  ];
  return table(columns, rows, { caption: `What was spent by ${GROUPS[by].toLowerCase()}` });
}

function unpricedSection(models) {
  const unknown = models.filter((one) => one.unpriced);
  if (!unknown.length) return null;
  return section(
    "Calls without a known price",
    h("p", "* The price of these models is not known, so a call of theirs counts as one of the dearest model known. Models on this machine cost nothing."),
    table([{ label: "Model", cell: (one) => one.key }, { label: "Calls", cell: (one) => `${count(one.unpriced)} of ${count(one.calls)}` }, { label: "Counted as", cell: (one) => money(one.costUsd) }], unknown, { caption: "Calls without a known price" }),
  );
}
