// What Annabelle does by itself: the coming week, every skill with its runs, and all that can be changed about one.
import { get, hubNow, Outbox, post } from "../api.js";
import { ask, askUntilDone, badge, button, codeBlock, dayOf, describeError, details, h, makeField, pairs, replace, table, time, toast } from "../dom.js";
import { onNews } from "../live.js";

const DAYS = 7;
const MOST_TIMES = 4;
const MOST_A_DAY = 24;
const RUNNING = ["due", "started"];
const KINDS = { finished: "good", failed: "bad", unknown: "bad", waiting: "wait", missed: "wait" };
const MISSED = [
  { value: "run", label: "Run once when Annabelle is back" },
  { value: "skip", label: "Skip it" },
  { value: "list", label: "Tell me which times were missed" },
];

export async function render(root, place) {
  const view = { root, number: place.rest[0], gone: false, pressed: null };
  view.draw = () => drawAgain(view, view.number === undefined ? drawAll : drawOne);
  await view.draw();
  if (place.query.has("edit")) root.querySelector('[data-key="edit"]')?.click();
  const note = (event) => (view.pressed = event.target.dataset?.key ?? null);
  root.addEventListener("click", note);
  // A form that is open stays as it is.
  const end = onNews(async () => view.gone || root.querySelector("form") || view.draw(), ["message", "done", "approval"]);
  return () => {
    view.gone = true;
    end();
  };
}

/** Draws, and leaves open what was open and the focus where it was. */
async function drawAgain(view, draw) {
  const content = await draw(view);
  if (view.gone) return;
  const open = [...view.root.querySelectorAll("details[open][id]")].map((one) => one.id);
  replace(view.root, content);
  for (const one of view.root.querySelectorAll("details")) one.open ||= open.includes(one.id);
  if (view.pressed && document.activeElement === document.body) view.root.querySelector(`[data-key="${CSS.escape(view.pressed)}"]`)?.focus();
}

async function drawAll(view) {
  const [{ skills, afterConversations }, upcoming, past] = await Promise.all([get("/skills"), get("/fires/upcoming", { days: DAYS }), get("/fires", { limit: 300 })]);
  const offered = skills.filter((one) => !one.confirmedAt && !one.enabled);
  const on = skills.filter((one) => one.enabled);
  const off = skills.filter((one) => !one.enabled && one.confirmedAt);
  const cards = (list) => h("div.grid", list.map((one) => skillCard(one, view)));
  return [
    h("div.row", h("h1", "Skills"), button("New skill", askForSkill, { className: "primary tools" })),
    h("h2", "The coming week"),
    drawWeek(upcoming.fires, on),
    h("h2", "What runs by itself"),
    on.length ? cards(on) : h("p.empty", "Nothing runs by itself. Say it in the chat: “remind me in 10 minutes to stretch”, or “every weekday at 8, tell me what is in my calendar”."),
    h("p.hint", "After every conversation: ", afterConversations.map((one) => `${one.name}: ${one.when}. `)),
    offered.length ? details(`Offered (${offered.length})`, [h("p.hint", "These come along and do nothing until you switch them on."), cards(offered)], { id: "offered" }) : null,
    off.length ? details(`Off or over (${off.length})`, cards(off), { id: "off" }) : null,
    h("h2", "Past runs"),
    drawRuns(past.fires),
  ];
}

/** A skill is an order, so it is given in the chat, where Annabelle asks back about what is not clear. */
function askForSkill() {
  const fields = [
    { name: "when", label: "When", required: true, hint: "As in: every weekday at 8:30, tomorrow at 9, every 2 hours" },
    { name: "what", label: "What Annabelle should do", kind: "textarea", rows: 3, required: true },
  ];
  const outbox = new Outbox();
  return askUntilDone("A new skill", fields, { yes: "Ask Annabelle to do it" }, async ({ when, what }) => {
    const text = `${when.trim()}: ${what.trim()}`;
    const made = await outbox.send(text, (externalId) => post("/message", { text, channel: "page", chatId: "main", externalId }));
    location.hash = `#/chat/${made.threadId}`;
  });
}

/** Seven columns; on a phone they stand below each other. What runs more often than every hour would fill them. */
function drawWeek(upcoming, skills) {
  const today = dayOf(hubNow());
  const days = new Map(Array.from({ length: DAYS }, (_, index) => [addDays(today, index), new Map()]));
  for (const one of upcoming) {
    const day = days.get(dayOf(one.dueAt));
    if (day && !day.has(one.skillId)) day.set(one.skillId, []);
    day?.get(one.skillId).push(one);
  }
  const often = skills.filter((skill) => [...days.values()].some((day) => day.get(skill.skillId)?.length > MOST_A_DAY));
  for (const day of days.values()) for (const one of often) day.delete(one.skillId);
  const column = ([day, found]) =>
    h(
      "li",
      { "aria-current": day === today ? "date" : null },
      h("h3", day === today ? "Today" : dayTitle(day, { weekday: "short", day: "numeric", month: "short" })),
      found.size ? h("ul", [...found.values()].map((times) => h("li", h("a", { href: `#/skills/${times[0].skillId}` }, times[0].name), h("br"), describeTimes(times)))) : h("p.hint", "Nothing"),
    );
  return [
    h("ol.week", [...days].map(column)),
    often.length ? h("p.hint", "All day long: ", often.map((one, index) => [index ? ", " : "", h("a", { href: `#/skills/${one.skillId}` }, one.name), ` (${one.when})`]), ".") : null,
  ];
}

function describeTimes(times) {
  const clock = (one) => time(one.dueAt, "clock");
  if (times.length > MOST_TIMES) return h("span.hint", clock(times[0]), " … ", clock(times.at(-1)), ` (${times.length} times)`);
  return h("span.hint", times.map((one, index) => [index ? ", " : "", clock(one)]));
}

export function addDays(day, number) {
  const date = new Date(`${day}T00:00:00Z`);
  date.setUTCDate(date.getUTCDate() + number);
  return date.toISOString().slice(0, 10);
}

/** A day such as 2026-11-18 in words. */
export function dayTitle(day, options = { dateStyle: "full" }) {
  return h("time", { dateTime: day }, new Intl.DateTimeFormat(undefined, { ...options, timeZone: "UTC" }).format(new Date(`${day}T00:00:00Z`)));
}

function address(skill) {
  // By its name: another skill may be called like the number of this one.
  return `/skills/${encodeURIComponent(skill.name)}`;
}

function skillCard(skill, view) {
  const heading = `skill-${skill.skillId}`;
  return h(
    "section.card",
    { "aria-labelledby": heading },
    h("h3", { id: heading }, h("a", { href: `#/skills/${skill.skillId}` }, skill.name), " ", stateBadge(skill)),
    skill.instructions && !isReminder(skill) && h("p.beginning", skill.instructions),
    summary(skill),
    h(
      "div.row",
      switchButton(skill, view),
      skill.confirmedAt && runButton(skill, view),
      h("a.button", { href: `#/skills/${skill.skillId}?edit`, "aria-label": `Edit ${skill.name}` }, "Edit"),
    ),
  );
}

function stateBadge(skill) {
  if (skill.enabled) return badge("on", "good");
  return skill.confirmedAt ? badge(skill.disabledWhy ? "switched off" : "off", skill.disabledWhy ? "bad" : "") : badge("offered", "wait");
}

function summary(skill) {
  const last = skill.lastFire;
  return [
    h("p", "Runs ", skill.when, "."),
    skill.disabledWhy && h("p.problem", skill.disabledWhy),
    skill.missingTools.length ? h("p.problem", `It needs what is not there now: ${skill.missingTools.join(", ")}.`) : null,
    h("p.hint", "Next: ", time(skill.nextDue) || (skill.enabled ? "not on a schedule" : "not while it is off")),
    h("p.hint", "Last: ", last ? [time(last.dueAt), " ", badge(last.state, KINDS[last.state]), last.state === "waiting" && [" ", h("a", { href: "#/inbox" }, "answer")]] : "never"),
  ];
}

function switchButton(skill, view) {
  const change = async () => {
    if (!skill.enabled && !skill.confirmedAt) {
      const sure = await ask(`Let “${skill.name}” do this by itself from now on?`, [], { yes: "Switch on", text: [h("p", "Runs ", skill.when, "."), h("p", skill.instructions), drawOrder(skill)] });
      if (!sure) return;
    }
    await post(`${address(skill)}/switch`, { enabled: !skill.enabled });
    await view.draw();
  };
  const label = skill.enabled ? "Switch off" : "Switch on";
  return button(label, change, { "aria-label": `${label} ${skill.name}`, data: { key: `switch-${skill.skillId}` } });
}

function runButton(skill, view) {
  const run = async () => {
    const fire = await post(`${address(skill)}/run`);
    toast(`${skill.name} runs now.`);
    await view.draw();
    watchRun(skill, fire, view).catch((error) => toast(describeError(error), "error"));
  };
  return button("Run now", run, { "aria-label": `Run ${skill.name} now`, data: { key: `run-${skill.skillId}` } });
}

/** Not every run says something, so no event tells that it has ended. */
async function watchRun(skill, fire, view) {
  for (let wait = 300; RUNNING.includes(fire?.state); wait = Math.min(wait * 1.5, 5000)) {
    await new Promise((resolve) => setTimeout(resolve, wait));
    if (view.gone) return;
    const { fires } = await get("/fires", { skill: skill.name, limit: 20 });
    fire = fires.find((one) => one.fireId === fire.fireId);
  }
  if (!fire || view.gone) return;
  toast(`${skill.name}: ${fire.state}.`, fire.state === "failed" ? "error" : "info");
  if (!view.root.querySelector("form")) await view.draw();
}

async function drawOne(view) {
  const { skills } = await get("/skills");
  const skill = skills.find((one) => String(one.skillId) === view.number);
  if (!skill) return [h("h1", "Skills"), h("p.empty", "There is no such skill any more. "), h("a", { href: "#/skills" }, "All skills")];
  const { fires } = await get("/fires", { skill: skill.name, limit: 200 });
  const card = h("section.card", { "aria-label": "The skill" });
  const edit = button("Edit", () => drawForm(card, skill, view), { data: { key: "edit" } });
  replace(
    card,
    h("p", stateBadge(skill)),
    summary(skill),
    h("p", h("a", { href: `#/chat/${skill.threadId}` }, "The conversation it reports to")),
    h("div.row", switchButton(skill, view), skill.confirmedAt && runButton(skill, view), edit, deleteButton(skill)),
  );
  return [
    h("p", h("a", { href: "#/skills" }, "‹ All skills")),
    h("h1", skill.name),
    card,
    h("h2", isReminder(skill) ? "What it says" : "What it does"),
    h("p.plain", skill.instructions || "One call, without a model."),
    drawOrder(skill),
    skill.plan && !isReminder(skill) ? details("The call it makes", codeBlock(skill.plan), { id: "call" }) : null,
    skill.preflight ? details("The call that shows whether there is anything to do", codeBlock(skill.preflight), { id: "preflight" }) : null,
    h("h2", "Set off by another program (webhook)"),
    drawWebhook(skill, view),
    h("h2", "Past runs"),
    drawRuns(fires),
  ];
}

function isReminder(skill) {
  return skill.plan?.tool === "send_message";
}

/** Everything that its runs may do. */
function drawOrder(skill) {
  const order = { ...skill.order, madeAfter: skill.madeAfter };
  const names = { tools: "Tools it may use", orders: "Taken as your order", receivers: "Receivers", files: "Files", pages: "Pages", token_budget: "Tokens a run", madeAfter: "Made after reading from outside" };
  const shown = Object.entries(names).filter(([name]) => (Array.isArray(order[name]) ? order[name].length : order[name]));
  return pairs(shown.map(([name, label]) => [label, [order[name]].flat().map((one) => h("div", String(one)))]));
}

function deleteButton(skill) {
  const remove = async () => {
    if (!(await ask(`Delete “${skill.name}”?`, [], { yes: "Delete", danger: true, text: "It cannot be brought back. What it did stays in the history." }))) return;
    await post(`${address(skill)}/delete`);
    toast(`Deleted: ${skill.name}.`);
    location.hash = "#/skills";
  };
  return button("Delete …", remove, { className: "danger" });
}

function drawWebhook(skill, view) {
  // An address that is shown once stays until the view is left, however often it is drawn again.
  const place = (view.webhook ??= h("div", { "aria-live": "polite" }));
  const make = async () => {
    if (skill.hasWebhook && !(await ask("Make a new address?", [], { yes: "Make it", danger: true, text: "The address it has now will no longer work." }))) return;
    const { url } = await post(`${address(skill)}/webhook`);
    skill.hasWebhook = true;
    const field = makeField({ name: "url", label: "Post to this address. It is shown this once.", value: url, hint: "Whoever knows it can set the skill off, so keep it to yourself. What is posted is data, never an instruction." });
    field.input.readOnly = true;
    replace(place, field.element, button("Copy", async () => toast((await copy(field.input)) ? "Copied." : "Select the address and copy it.")));
    field.input.select();
  };
  return [h("p.hint", skill.hasWebhook ? "It has an address: whoever posts to it sets the skill off." : "With an address of its own, another program can set it off."), button(skill.hasWebhook ? "New address …" : "Make an address", make, { data: { key: "webhook" } }), place];
}

/** Without a secure connection a browser has no clipboard for pages. */
async function copy(input) {
  input.select();
  return Boolean(await navigator.clipboard?.writeText(input.value).then(() => true, () => false));
}

async function drawForm(card, skill, view) {
  const { tools } = await get("/tools/list");
  const fields = editFields(skill);
  const known = h("datalist", { id: "known-tools" }, tools.map((one) => h("option", { value: one.name })));
  const form = h("form", { onsubmit: (event) => event.preventDefault() }, h("h2", `Change ${skill.name}`), fields.map((one) => one.element));
  const wanted = fields.find((one) => one.name === "requiredTools");
  if (wanted) {
    const add = makeField({ name: "add", label: "Add a tool", hint: "Begin to type its name and choose one." });
    add.input.setAttribute("list", known.id);
    add.input.addEventListener("change", () => {
      if (!tools.some((one) => one.name === add.input.value)) return;
      wanted.input.value = [...readLines(wanted.input.value), add.input.value].join("\n");
      add.input.value = "";
    });
    wanted.element.after(add.element, known);
  }
  const save = async () => {
    const body = findChanges(fields);
    if (Object.keys(body).length) {
      const changed = await post(`${address(skill)}/update`, body);
      toast(changed.enabled ? `Saved. It runs ${changed.when}.` : "Saved. It is off: switch it on for it to run.");
    }
    form.remove();
    await view.draw();
  };
  form.append(h("div.row", button("Save", save, { type: "submit", className: "primary" }), button("Cancel", () => (form.remove(), view.draw()))));
  replace(card, form);
  fields[0].input.focus();
}

function editFields(skill) {
  const cron = skill.when.includes("(cron,") ? skill.trigger.schedule : null;
  const words = isReminder(skill)
    ? { name: "message", label: "What it says", kind: "textarea", rows: 2, value: skill.instructions, required: true }
    : { name: "instructions", label: "Instructions", kind: "textarea", rows: 8, value: skill.instructions, required: true, hint: "In its own runs these count as your words." };
  const tools = { name: "requiredTools", label: "Tools it may use", kind: "textarea", rows: 3, value: skill.requiredTools.join("\n"), hint: "One per line. A run may use no others." };
  const asked = [
    { name: "name", label: "Name", value: skill.name, required: true },
    { name: "when", label: "When", value: cron ?? skill.when, required: true, hint: "In words, as in “every weekday at 8:30” or “tomorrow at 9”, or as a cron expression of five fields." },
    // A skill of one call makes exactly that call; its words are only a description.
    ...(skill.plan && !isReminder(skill) ? [] : [words]),
    ...(skill.plan ? [] : [tools]),
    { name: "notify", label: "Tell me what came of it", kind: "checkbox", value: skill.notify },
    { name: "missed", label: "If Annabelle was not running at the time", kind: "select", options: MISSED, value: skill.missed },
  ];
  return asked.map((one) => makeField(one));
}

function findChanges(fields) {
  const body = {};
  for (const one of fields) {
    const value = one.read();
    if (value === one.before) continue;
    if (one.name === "requiredTools") body.requiredTools = [...new Set(readLines(value))];
    else if (one.name === "when") body[/^[\d*,/-]+(\s+[\w*,/#-]+){4}$/.test(value.trim()) ? "schedule" : "when"] = value;
    else body[one.name] = value;
  }
  return body;
}

function readLines(text) {
  return text.split("\n").map((one) => one.trim()).filter(Boolean);
}

/** Runs of one day with the same outcome are one row: some skills run every few minutes. */
function drawRuns(fires) {
  const groups = new Map();
  for (const one of fires) {
    const key = JSON.stringify([dayOf(one.dueAt), one.skillId, one.state, one.result]);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(one);
  }
  const columns = [
    { label: "Due", cell: (group) => (group.length > 1 ? [time(group.at(-1).dueAt), " … ", time(group[0].dueAt, "clock"), ` (${group.length} times)`] : time(group[0].dueAt)) },
    { label: "Skill", cell: ([one]) => h("a", { href: `#/skills/${one.skillId}` }, one.name) },
    { label: "Outcome", cell: ([one]) => [badge(one.state, KINDS[one.state]), one.state === "waiting" && [" ", h("a", { href: "#/inbox" }, "answer")]] },
    { label: "What came of it", cell: ([one]) => (one.result?.length > 200 ? details(`${one.result.slice(0, 200)} …`, h("p.plain", one.result)) : (one.result ?? "")) },
  ];
  return table(columns, [...groups.values()], { caption: "Past runs, newest first", empty: "Nothing was due yet." });
}
