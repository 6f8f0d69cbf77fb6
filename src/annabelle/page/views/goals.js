// Goals in the person's order, one goal with all that belongs to it, and the notes of all of them.
import { get, newId, Outbox, post } from "../api.js";
import { ask, askUntilDone, badge, button, count, describeError, details, draft, h, money, onEnter, onlyChanged, replace, tabs, time, toast, toolSentence } from "../dom.js";
import { drawChanged, drawRows, onNews, redraw } from "../live.js";
import { markdown } from "../markdown.js";
import { NotesPanel, outsideBadge, outsideWarning } from "../notes.js";
import { toolCell } from "./chat.js";

const DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const STATES = { working: "good", active: "good", completed: "good", paused: "wait", cancelled: "bad" };
const AT_WORK = ["active", "paused"];
const SORTS = { recurring: "regularly", follow_up: "follow-up", note: "after your notes", heartbeat: "when it was quiet for long" };
const INTENT = { name: "intent", label: "What for (optional)" };
const NO_GOALS = `There are no goals yet. A goal is something you want to reach in weeks: Annabelle looks things up for it,
  keeps notes, and comes back to you. Make one, or talk it through.`;
const END = Number.MAX_SAFE_INTEGER;

export function render(root, place) {
  if (place.rest[0]) return renderGoal(root, place.rest[0]);
  return place.query.get("tab") === "notes" ? renderNotes(root) : renderGoals(root);
}

/** Runs `work` after the runs before it, so that an older answer is never drawn over a newer one. */
function inTurn(work) {
  let last = Promise.resolve();
  return () => (last = last.catch(() => {}).then(work));
}

function goalTabs(notes) {
  return tabs("Goals and notes", [["#/goals", "Goals", !notes], ["#/goals?tab=notes", "All notes", notes]]);
}

async function renderNotes(root) {
  const { goals } = await get("/goals");
  const panel = new NotesPanel({ goals: () => goals });
  replace(root, h("h1", "Goals"), goalTabs(true), panel.element);
  panel.refresh().catch((error) => toast(describeError(error), "error"));
  return onNews(() => panel.refresh());
}

async function renderGoals(root) {
  const list = h("ol.goals", { "aria-label": "Your goals" });
  const archived = h("ol.goals", { "aria-label": "Archived goals" });
  const put = details("Archived", archived);
  const empty = h("p.empty", NO_GOALS);
  let goals = [];
  const move = (goal, step) => moveGoal(goals, goal, step, refresh);
  const refresh = inTurn(async () => {
    ({ goals } = await get("/goals", { archived: true }));
    const open = goals.filter((one) => one.state !== "archived").map((one, index, all) => ({ ...one, first: !index, last: index === all.length - 1 }));
    const away = goals.filter((one) => one.state === "archived");
    drawRows(list, open, (one) => one.goalId, (one) => goalRow(one, move));
    drawRows(archived, away, (one) => one.goalId, (one) => goalRow(one, null));
    list.hidden = !open.length;
    put.hidden = !away.length;
    put.firstChild.textContent = `Archived (${away.length})`;
    empty.hidden = Boolean(goals.length);
  });
  await refresh();
  const makers = h("div.row", button("New goal", newGoal, { className: "primary" }), button("Talk it through", talkThrough));
  replace(root, h("h1", "Goals"), goalTabs(false), makers, empty, list, put);
  return onNews(refresh);
}

function goalRow(goal, move) {
  const mover = (label, way, step, last) =>
    button(label, () => (last ? null : move(goal, step)), { "aria-label": `Move ${goal.title} ${way}`, "aria-disabled": String(last), className: "quiet" });
  const movers = move && h("span.row.tools", mover("↑", "up", -1, goal.first), mover("↓", "down", 1, goal.last));
  const title = h("h2", h("a", { href: `#/goals/${goal.goalId}` }, goal.title));
  const next = goal.nextCheckIn ? ["Next check-in ", time(goal.nextCheckIn)] : "No check-in is arranged.";
  const head = h("div.row", title, badge(goal.state, STATES[goal.state]), movers);
  return h("li.card", head, goal.description && h("p.beginning", goal.description), h("p.hint", next));
}

/** Archived goals keep their places in the order. */
async function moveGoal(all, goal, step, refresh) {
  const open = all.filter((one) => one.state !== "archived");
  const at = open.findIndex((one) => one.goalId === goal.goalId);
  const ids = all.map((one) => one.goalId);
  const from = ids.indexOf(goal.goalId);
  const to = ids.indexOf(open[at + step].goalId);
  [ids[from], ids[to]] = [ids[to], ids[from]];
  await post("/goals/reorder", { goals: ids });
  await refresh();
  toast(`${goal.title} is number ${at + step + 1} now.`);
}

function checkInFields(never) {
  const often = { ...(never && { "": "Not regularly" }), daily: "Every day", weekdays: "On weekdays", weekly: "Once a week" };
  const options = Object.entries(often).map(([value, label]) => ({ value, label }));
  return [
    { name: "frequency", label: "How often it comes back by itself", kind: "select", options },
    { name: "day", label: "Day, if once a week", kind: "select", options: DAYS },
    { name: "time", label: "Time", kind: "time", value: "09:00", required: true },
    INTENT,
  ];
}

const termFields = (goal = {}) => [
  { name: "title", label: "Title", value: goal.title, required: true },
  { name: "description", label: "What is to be reached, and by when", kind: "textarea", value: goal.description, rows: 4 },
  { name: "instructions", label: "How it is to be done (optional)", kind: "textarea", value: goal.instructions, rows: 4 },
];

function newGoal() {
  const learnings = { name: "learnings", label: "What it should know, one thing a line (optional)", kind: "textarea", rows: 3 };
  const text = "It may search the web and your memory. Other tools can be given to it afterwards.";
  return askUntilDone("A new goal", [...termFields(), learnings, ...checkInFields(true)], { yes: "Make the goal", text }, async (given) => {
    const { frequency, day, time: clock, intent, ...terms } = given;
    const known = given.learnings.split("\n").map((one) => one.trim()).filter(Boolean);
    const made = await post("/goals", { ...terms, learnings: known, checkIn: frequency ? { frequency, day, time: clock, intent } : null });
    location.hash = `#/goals/${made.goalId}`;
  });
}

/** A chat of its own, which asks for what is missing and proposes the goal. */
function talkThrough() {
  const fields = [{ name: "text", label: "What do you want to reach?", kind: "textarea", required: true }];
  const text = "Annabelle asks a few questions and proposes the goal. It is set up when you say yes.";
  const chat = { channel: "goal_creation", chatId: newId() };
  const outbox = new Outbox();
  return askUntilDone("Talk a goal through", fields, { yes: "Begin", text }, async (given) => {
    const made = await outbox.send(given.text, (externalId) => post("/message", { text: given.text, ...chat, externalId }));
    location.hash = `#/chat/${made.threadId}`;
  });
}

function section(title, ...children) {
  return h("section.card", { "aria-label": title }, h("h2", title), children);
}

/** A part of the page that is drawn again only when what it shows has changed. */
function makePart(title, draw) {
  const body = h("div");
  return { element: section(title, body), update: (...data) => drawChanged(body, data, () => draw(...data)) };
}

async function renderGoal(root, named) {
  const first = await get(`/goals/${encodeURIComponent(named)}`);
  const path = `/goals/${first.goalId}`;
  let goals = [];
  const refresh = inTurn(async () => {
    const [goal, all] = await Promise.all([get(path), get("/goals", { archived: true })]);
    goals = all.goals.filter((one) => one.state !== "archived" || one.goalId === goal.goalId);
    draw(goal);
    await Promise.all([talk.update(goal), tasks.update(goal.goalId), notes.refresh()]);
  });
  const change = (what, told, body) => async () => {
    await post(`${path}/${what}`, body);
    if (told) toast(told);
    await refresh();
  };
  const title = h("h1");
  const state = h("span", { role: "status" });
  const about = makePart("What is to be reached", (goal) => drawTerms(goal, path, change));
  const checkIns = makePart("Check-ins", (found, state) => drawCheckIns(found, state, change));
  const learnings = makePart("Learnings", (found) => drawLearnings(found, change));
  const tools = makePart("Tools", (chosen) => drawTools(chosen, change));
  const talk = new GoalTalk(change, first.goalId);
  const tasks = new TaskList(refresh);
  const notes = new NotesPanel({ goalId: first.goalId, goals: () => goals, onChange: refresh });
  const draw = (goal) => {
    title.textContent = goal.title;
    if (root.isConnected) document.title = `${goal.title} · Annabelle`;
    if (state.textContent !== goal.state) replace(state, badge(goal.state, STATES[goal.state]));
    about.update({ ...goal, nextCheckIn: null, updatedAt: null, learnings: null, checkIns: null, tasks: null, running: null, tools: null });
    checkIns.update(goal.checkIns, goal.state);
    learnings.update(goal.learnings);
    tools.update(goal.tools);
  };
  const parts = [about.element, talk.element, tasks.element, section("Notes", notes.element), checkIns.element, learnings.element, tools.element];
  await refresh();
  replace(root, title, h("p.row", h("a", { href: "#/goals" }, "‹ All goals"), state), parts);
  return onNews(refresh);
}

function drawTerms(goal, path, change) {
  const fields = termFields(goal);
  const edit = () => askUntilDone("Change the goal", fields, { yes: "Save" }, (given) => change("update", "The goal is changed.", onlyChanged(fields, given))());
  const archive = async () => {
    const text = "What runs for it is stopped, and nothing runs until it is reopened. Its notes stay.";
    if (await ask(`Archive “${goal.title}”?`, [], { yes: "Archive", text })) await change("archive", "The goal is archived.")();
  };
  const remove = async () => {
    const text = `With its ${goal.notes} notes, its learnings, check-ins and tasks. What was said stays in its conversation.`;
    if (!(await ask(`Delete “${goal.title}” for good?`, [], { yes: "Delete", danger: true, text }))) return;
    await post(`${path}/delete`);
    toast("The goal is deleted.");
    location.hash = "#/goals";
  };
  const reopen = change("reopen", "The goal is taken up again.");
  const putAway = goal.state === "archived" ? button("Reopen", reopen, { className: "primary" }) : button("Archive", archive);
  const cost = `${count(goal.calls)} model ${goal.calls === 1 ? "call" : "calls"} · ${goal.calls ? money(goal.costUsd) : "$0.00"} · made `;
  return [
    goal.description ? markdown(goal.description) : h("p.hint", "Nothing is said about it yet."),
    goal.instructions && [h("h3", "How it is to be done"), markdown(goal.instructions)],
    h("p.hint", cost, time(goal.createdAt)),
    h("div.row", button("Edit", edit), putAway, button("Delete", remove, { className: "danger" })),
  ];
}

function drawCheckIns(found, state, change) {
  if (state === "archived") return h("p.hint", "An archived goal is not looked at. Reopen it first.");
  const arrange = (title, fields, action) => () =>
    askUntilDone(title, fields, { yes: "Arrange" }, (given) => change("check-in", "The check-in is arranged.", { action, ...given })());
  const hours = { name: "delayHours", label: "In how many hours (1 to 720)", kind: "number", value: 24, required: true };
  const due = [...found].sort((one, other) => Date.parse(one.nextDue) - Date.parse(other.nextDue));
  const rows = due.map((one) => h("li", time(one.nextDue), " ", badge(SORTS[one.sort] ?? one.sort), " ", one.intent));
  const regularly = button("Arrange a check-in", arrange("A regular check-in", checkInFields(false), "schedule"));
  const once = button("Follow up once", arrange("A follow-up", [hours, INTENT], "follow_up"));
  const clear = button("Clear check-ins", change("check-in", "The check-ins are cleared.", { action: "clear" }));
  const arranged = found.some((one) => ["recurring", "follow_up"].includes(one.sort));
  return [
    rows.length ? h("ul.plain-list", rows) : h("p.hint", "It is not looked at by itself."),
    h("div.row", regularly, once, arranged && clear),
  ];
}

function drawLearnings(found, change) {
  const say = (title, value, where) => () => {
    const field = { name: "content", label: "What it should know or do", kind: "textarea", value, rows: 3, required: true };
    return askUntilDone(title, [field], { yes: "Save" }, (given) => change(where, "The learning is kept.", given)());
  };
  const remove = (one) => async () => {
    const sure = await ask("Remove this learning?", [], { yes: "Remove", danger: true, text: one.content });
    if (sure) await change(`learnings/${one.learningId}/remove`, "The learning is removed.")();
  };
  const labelled = (label, one) => ({ className: "quiet", "aria-label": `${label} “${one.content}”` });
  const row = (one) => {
    const words = h("span.grow", one.content, " ", outsideBadge(one.readFrom?.length));
    const reword = say("Change a learning", one.content, `learnings/${one.learningId}/update`);
    const buttons = [button("Change", reword, labelled("Change", one)), button("Remove", remove(one), labelled("Remove", one))];
    return h("li.line.row", words, h("span.row", buttons));
  };
  const none = "Nothing was learnt yet. What you add here is kept in mind in all work for the goal.";
  return [
    found.length ? h("ul.plain-list", found.map(row)) : h("p.hint", none),
    button("Add a learning", say("A new learning", "", "learnings")),
  ];
}

function drawTools(chosen, change) {
  const choose = async () => {
    const { tools } = await get("/tools/list");
    const offered = tools.filter((one) => one.audience === "everyone" && !chosen.includes(one.name));
    const described = new Map(tools.map((one) => [one.name, toolSentence(one.description)]));
    const names = [...chosen, ...offered.map((one) => one.name)];
    const hint = (name) => described.get(name) ?? "It is not there now.";
    const fields = names.map((name) => ({ name, label: name, kind: "checkbox", value: chosen.includes(name), hint: hint(name) }));
    const save = (given) => change("update", "The tools are changed.", { tools: names.filter((one) => given[one]) })();
    await askUntilDone("Tools of this goal", fields, { yes: "Save tools", filter: "Find a tool" }, save);
  };
  const none = "Only those that every goal has, for notes, learnings, tasks and check-ins.";
  return [h("p.row", chosen.length ? chosen.map((one) => badge(one)) : none), button("Choose tools", choose)];
}

/** The end of a goal's conversation, and a box to write to it. */
class GoalTalk {
  constructor(change, goalId) {
    Object.assign(this, { change, outbox: new Outbox() });
    this.log = h("div", { role: "log", "aria-live": "polite", "aria-label": "What was said last" });
    this.status = h("div.row", { role: "status" });
    this.links = h("div.row");
    const label = "Write to this goal";
    const send = onEnter(() => this.send().catch((error) => toast(describeError(error), "error")));
    const { area, write } = draft("goal", goalId, { placeholder: label, "aria-label": label, onkeydown: send });
    Object.assign(this, { input: area, write });
    this.form = h("div", area, h("div.row.end", button("Send", () => this.send(), { className: "primary" })));
    this.element = section("Conversation", this.log, this.status, this.form, this.links);
  }

  async send() {
    const text = this.input.value.trim();
    if (!text) return;
    this.write("");
    try {
      await this.outbox.send(text, (externalId) => this.change("messages", null, { text, externalId })());
    } catch (error) {
      this.write(this.input.value || text);
      throw error;
    }
  }

  async reset() {
    const text = "What was said is archived and out of its agent's mind. Its notes and learnings stay.";
    const sure = await ask("Start the conversation afresh?", [], { yes: "Start afresh", text });
    if (sure) await this.change("reset", "The conversation starts afresh.")();
  }

  async update({ running, threadId, state }) {
    this.form.hidden = state === "archived";
    const stop = button("Stop", () => post(`/messages/${running.messageId}/cancel`), { className: "danger" });
    if (running?.messageId !== this.running) replace(this.status, running && ["At work since ", time(running.since, "clock"), stop]);
    const whole = () => h("a", { href: `#/chat/${threadId}` }, "Open the whole conversation");
    if (threadId !== this.threadId) replace(this.links, threadId && [whole(), button("Start afresh", () => this.reset(), { className: "quiet" })]);
    Object.assign(this, { threadId, running: running?.messageId });
    const { messages } = threadId ? await get(`/threads/${threadId}/messages`, { before: END, limit: 6 }) : { messages: [] };
    const said = messages.filter((one) => one.type === "text" && !["skill", "decision"].includes(one.source)).slice(-4);
    drawRows(this.log, said, (one) => one.id, lastMessage);
  }
}

function lastMessage(message) {
  const own = ["user", "command"].includes(message.source);
  const asks = Boolean(message.metadata?.approvals?.length) && h("p", h("a", { href: "#/inbox" }, "Answer it in the inbox"));
  const words = own ? h("div.plain", message.text) : markdown(message.text);
  const when = h("p.hint", own && "You, ", time(message.createdAt), " ", outsideBadge(message.metadata?.trust === "untrusted"));
  return h("article", { className: `message ${own ? "own" : message.source}` }, words, asks, when);
}

/** Research for a goal, with what it does while it does it. */
class TaskList {
  constructor(refresh) {
    Object.assign(this, { refresh, cards: new Map() });
    this.list = h("div");
    this.empty = h("p.hint", "Nothing was looked up yet. Ask the goal to find something out.");
    this.element = section("Tasks", this.empty, this.list);
  }

  async update(goalId) {
    const { tasks } = await get("/tasks", { goal: goalId, limit: 30 });
    this.empty.hidden = Boolean(tasks.length);
    drawRows(this.list, tasks.map((one) => one.taskId), (id) => id, (id) => this.cards.set(id, new TaskCard(this.refresh)).get(id).element);
    await Promise.all(tasks.map((one) => this.cards.get(one.taskId).update(one)));
  }
}

class TaskCard {
  constructor(refresh) {
    this.refresh = refresh;
    this.head = h("div");
    this.found = h("div");
    this.calls = h("div");
    this.more = details("What it does", [this.found, this.calls], { ontoggle: () => this.more.open && this.load().catch(() => {}) });
    this.element = h("article.line.task", this.head, this.more);
  }

  async update(task) {
    const atWork = AT_WORK.includes(task.state);
    const known = this.task;
    const changed = JSON.stringify(task) !== JSON.stringify(known);
    this.task = task;
    // Nobody has to open what is being done now, nor what has just been found.
    if (known === undefined) this.more.open = atWork;
    else if (this.more.open && (atWork || changed)) await this.load();
    if (!changed) return;
    this.more.firstChild.textContent = atWork ? "What it does" : "What it did and found";
    redraw(this.head, this.describe(task));
  }

  describe(task) {
    const act = (label, what) =>
      button(label, async () => {
        await post(`/tasks/${task.taskId}/${what}`);
        await this.refresh();
      }, { "aria-label": `${label}: ${task.name}` });
    const atWork = AT_WORK.includes(task.state);
    const asks = task.state === "paused" && !task.nextTryAt;
    const again = task.nextTryAt && [" · tried again ", time(task.nextTryAt)];
    const ended = task.finishedAt && [" · ended ", time(task.finishedAt)];
    return [
      h("h3", task.name, " ", badge(task.state, STATES[task.state])),
      h("p.hint", time(task.createdAt), again, ended),
      task.progress && h("p.progress", { role: "status" }, task.progress),
      asks && h("p", "It waits for your answer: ", h("a", { href: "#/inbox" }, "Inbox")),
      ["paused", "cancelled"].includes(task.state) && task.result && h("p.problem", task.result),
      h("div.row", atWork && act("Cancel", "cancel"), (task.state === "cancelled" || task.nextTryAt) && act("Try again", "retry")),
    ];
  }

  async load() {
    const { taskId, threadId } = this.task;
    const said = threadId ? get(`/threads/${threadId}/messages`, { before: END, limit: 20 }) : { messages: [] };
    const [{ instructions, note }, { messages }] = await Promise.all([get(`/tasks/${taskId}`), said]);
    const found = note && [Boolean(note.readFrom?.length) && outsideWarning(note.readFrom), markdown(note.content)];
    replace(this.found, instructions && h("p", instructions), found);
    drawRows(this.calls, messages.filter((one) => one.type === "tool"), (one) => one.id, (one) => toolCell(one.metadata));
  }
}
