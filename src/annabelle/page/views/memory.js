// What Annabelle remembers, why, and how to correct or forget it; the profile, the persona and a timeline.
import { callTool, get, hubNow, post } from "../api.js";
import { ask, badge, button, count, dayOf, describeError, details, h, makeField, pairs, replace, table, tabs, time, toast, valueField } from "../dom.js";
import { markdown } from "../markdown.js";
import { addDays, dayTitle } from "./skills.js";

const CATEGORIES = ["preference", "background", "pattern", "project", "contact", "decision"];
const TABS = [
  { name: "facts", title: "Facts", draw: drawFacts },
  { name: "timeline", title: "Timeline", draw: drawTimeline },
  { name: "profile", title: "Profile", draw: drawProfile },
  { name: "persona", title: "Persona", draw: drawPersona },
  { name: "forget", title: "Forget", draw: drawForget, owner: true },
];
const ORIGINS = {
  agent: "stored by Annabelle during a conversation",
  conversation: "read from a conversation after it",
  cli: "told by a person at the terminal",
  api: "told by a person on this page or by another client",
  hub: "stored by Annabelle",
  tidy: "made of other facts when they were tidied",
  file: "imported from a file",
};
const PAGE = 50;
const WEEK = 7;
const MANY = 100;

export async function render(root, place) {
  const { session, query } = place;
  const parts = TABS.filter((one) => !one.owner || session.owner);
  const shown = parts.find((one) => one.name === place.rest[0]) ?? parts[0];
  const agent = query.get("agent") ?? session.agentId;
  const own = agent === session.agentId;
  const link = (name, more = {}) => {
    const parameters = new URLSearchParams(own ? more : { ...more, agent }).toString();
    return `#/memory/${name}${parameters && `?${parameters}`}`;
  };
  const memory = { session, query, agent, own, link, call: (tool, args = {}) => callTool(`memory_${tool}`, own ? args : { ...args, agent_id: agent }) };
  const body = h("div");
  const links = parts.map((one) => [link(one.name), one.title, one === shown]);
  replace(root, h("h1", "Memory"), session.owner && (await agentChoice(agent, shown.name)), tabs("Memory", links), body);
  await shown.draw(body, memory);
}

/** Every agent has a memory of its own. With one agent there is nothing to choose. */
async function agentChoice(agent, tab) {
  const { agents } = await get("/agents");
  if (agents.length < 2) return null;
  const field = makeField({ name: "agent", label: "Whose memory", kind: "select", options: agents.map((one) => one.agentId), value: agent });
  field.input.addEventListener("change", () => (location.hash = `#/memory/${tab}?agent=${encodeURIComponent(field.read())}`));
  return field.element;
}

// Facts

async function drawFacts(root, memory) {
  const stats = await memory.call("get_memory_stats");
  const options = [{ value: "", label: `All (${count(stats.current_facts)})` }, ...stats.facts.map((one) => ({ value: one.category, label: `${one.category} (${count(one.current)})` }))];
  const words = makeField({ name: "words", label: "Search", kind: "search", value: memory.query.get("q") ?? "" });
  const category = makeField({ name: "category", label: "Category", kind: "select", options });
  const history = makeField({ name: "history", label: "Also corrected and deleted ones", kind: "checkbox" });
  const results = h("div", { tabIndex: -1 });
  const status = h("p.hint", { role: "status" });
  let asked = 0;
  const search = async () => {
    const turn = ++asked;
    const query = words.read().trim();
    const content = query ? await found(query, category.read(), memory, search) : [await listFacts(category.read(), history.read(), null, memory, search)];
    if (turn !== asked) return;
    replace(results, content);
    status.textContent = query ? `${results.querySelectorAll("article").length} found.` : "The newest first. Search with a question or a few words.";
    if (turn > 1 && document.activeElement === document.body) results.focus();
  };
  const form = h("form.searching", { role: "search", onsubmit: (event) => event.preventDefault() }, words.element, category.element, button("Search", search, { type: "submit", className: "primary" }));
  const again = () => search().catch((error) => toast(describeError(error), "error"));
  for (const one of [category, history]) one.input.addEventListener("change", again);
  words.input.addEventListener("search", () => words.read() || again());
  replace(root, form, history.element, details("Add a fact", addForm(memory, search)), status, results);
  await search();
}

function addForm(memory, done) {
  const fact = makeField({ name: "fact", label: "The fact", required: true, hint: "A short sentence that makes sense by itself, as in “Lives in Lisbon since May”." });
  const category = makeField({ name: "category", label: "Its category", kind: "select", options: CATEGORIES, value: "background" });
  const add = async () => {
    tellStored(await memory.call("store_fact", { fact: fact.read(), category: category.read(), source: "added on the page" }));
    fact.input.value = "";
    await done();
  };
  return h("form.card", { onsubmit: (event) => event.preventDefault() }, fact.element, category.element, button("Remember it", add, { type: "submit", className: "primary" }));
}

function tellStored(stored) {
  const replaced = stored.superseded.map((one) => `It took the place of “${one.fact}”.`);
  const similar = stored.similar_existing.map((one) => `“${one.fact}” is nearly the same.`);
  toast([stored.status === "known" ? "It was known already." : "Remembered.", ...replaced, ...similar].join(" "));
}

async function listFacts(category, history, before, memory, done) {
  const page = await memory.call("list_facts", { limit: PAGE, include_retired: history, ...(category && { category }), ...(before && { before_id: before }) });
  if (!page.facts.length) return h("p.empty", before ? "These were all." : "Nothing is remembered here yet. Tell Annabelle something in the chat, or add a fact above.");
  const older = async () => replace(rest, await listFacts(category, history, page.next_before_id, memory, done));
  const rest = h("div", page.more && button("Show older facts", older));
  return h("div", page.facts.map((one) => factCard(one, memory, done)), rest);
}

async function found(query, category, memory, done) {
  const answer = await memory.call("retrieve_memories", { query, limit: 20, ...(category && { category }) });
  if (!answer.facts.length && !answer.conversations.length) return [h("p.empty", "Nothing is known about it.")];
  return [
    answer.facts.length ? [h("h2", "Facts"), answer.facts.map((one) => factCard(one, memory, done))] : null,
    answer.conversations.length ? [h("h2", "Said earlier"), answer.conversations.map(turnCard)] : null,
  ];
}

function turnCard(turn) {
  const where = turn.session_id.startsWith("thr_") && h("a", { href: `#/chat/${turn.session_id}` }, "the conversation");
  return h("article.card", saidWords(turn), h("p.hint", time(turn.said_at), where && [" · ", where], turn.trust === "untrusted" && [" ", foreignBadge()]));
}

function saidWords({ user_message: question, agent_response: answer }) {
  return [h("p.plain", h("strong", "You: "), question), answer && h("div", h("strong", "Annabelle: "), markdown(answer))];
}

function foreignBadge() {
  return badge("others may have written this", "wait");
}

/** One fact with what can be done about it. A deleted one can be brought back where it was. */
function factCard(fact, memory, done) {
  const card = h("article.card.fact");
  const remove = async () => {
    const retired = await memory.call("delete_fact", { fact_id: fact.id });
    fact = retired.fact;
    draw();
    toast("Deleted. It stays in the history, from which you can bring it back.");
  };
  const restore = async () => {
    fact = (await memory.call("restore_fact", { fact_id: fact.id })).fact;
    draw();
    toast("It is known again.");
  };
  const draw = () => {
    const about = [fact.category, " · ", time(fact.updated_at), fact.source && ` · ${fact.source}`];
    const buttons = fact.retired_because
      ? button("Bring back", restore)
      : [button("Correct", () => correctForm(card, fact, memory, draw, done)), button("Delete", remove)];
    const forget = memory.session.owner && memory.own && h("a.button.danger", { href: memory.link("forget", { fact: fact.id }) }, "Forget for good …");
    replace(
      card,
      h("p", fact.fact),
      h("p.hint", about, " ", fact.trust === "untrusted" && foreignBadge(), fact.retired_because && badge(fact.retired_because)),
      whyKnown(fact.id, memory),
      h("div.row", buttons, forget),
    );
  };
  draw();
  return card;
}

function correctForm(card, fact, memory, back, done) {
  const words = makeField({ name: "fact", label: "What is right", kind: "textarea", rows: 2, value: fact.fact, required: true, hint: "The old words stay as history." });
  const category = makeField({ name: "category", label: "Its category", kind: "select", options: CATEGORIES, value: fact.category });
  const save = async () => {
    tellStored(await memory.call("update_fact", { fact_id: fact.id, fact: words.read(), category: category.read() }));
    await done();
  };
  replace(card, words.element, category.element, h("div.row", button("Save", save, { className: "primary" }), button("Cancel", back)));
  words.input.focus();
}

function whyKnown(id, memory) {
  const place = h("div", "Loading …");
  const element = details("Why is this known?", place);
  const load = async () => {
    const why = await memory.call("explain_fact", { fact_id: id });
    const message = why.source.message_id && (await get(`/messages/${why.source.message_id}`).catch(() => null));
    replace(place, explain(why, message));
  };
  const onToggle = () => element.open && load().catch((error) => replace(place, h("p.problem", describeError(error))));
  element.addEventListener("toggle", onToggle, { once: true });
  return element;
}

function explain({ fact, source, said, earlier, later, retired_by: retiredBy }, message) {
  const thread = message ? `${message.threadId}?at=${message.position}` : source.thread_id;
  const others = (list) => list.map((one) => h("div", one.fact, " ", h("span.hint", time(one.created_at))));
  const rows = [
    ["Since", [time(fact.created_at), `, ${ORIGINS[source.kind] ?? source.kind}`, source.channel && ` (${source.channel})`]],
    ["Source", [fact.source, thread && [fact.source && " · ", h("a", { href: `#/chat/${thread}` }, message ? "the message" : "the conversation")]]],
    ["Trust", fact.trust === "trusted" ? "your own words, or what you accepted" : `others may have written this${fact.learnt_from.length ? `: learnt from ${fact.learnt_from.join(", ")}` : ""}`],
    ["Read before it", source.tools.join(", ")],
    ["The words", source.quote && h("q", source.quote)],
    ["What was said", said && [saidWords(said), h("span.hint", time(said.said_at))]],
    ["Made of facts", source.merged.join(", ")],
    ["Took the place of", earlier.length && others(earlier)],
    ["Replaced by", later.length && others(later)],
    ["History since", fact.retired_at && [time(fact.retired_at), `, ${fact.retired_because}${retiredBy ? ` by ${retiredBy}` : ""}`]],
  ];
  return pairs(rows.filter(([, value]) => value && (!Array.isArray(value) || value.some(Boolean))));
}

// Timeline

async function drawTimeline(root, memory) {
  const words = makeField({ name: "words", label: "Only what has this text", kind: "search" });
  const kind = makeField({ name: "kind", label: "What", kind: "select", options: [{ value: "", label: "Everything" }, { value: "facts", label: "Facts" }, { value: "conversations", label: "Conversations" }] });
  const days = h("div");
  let last = dayOf(hubNow());
  const load = async () => {
    const filter = { ...(words.read().trim() && { query: words.read().trim() }), ...(kind.read() && { categories: [kind.read()] }) };
    const wanted = Array.from({ length: WEEK }, (_, index) => addDays(last, -index));
    const drawn = await Promise.all(wanted.map((day) => drawDay(day, filter, memory)));
    const none = h("p.empty", "Nothing from ", dayTitle(wanted.at(-1), { dateStyle: "medium" }), " to ", dayTitle(last, { dateStyle: "medium" }), ".");
    days.append(...(drawn.some(Boolean) ? drawn.filter(Boolean) : [none]));
    last = addDays(last, -WEEK);
  };
  const search = async () => {
    last = dayOf(hubNow());
    replace(days);
    await load();
  };
  const form = h("form.searching", { role: "search", onsubmit: (event) => event.preventDefault() }, words.element, kind.element, button("Show", search, { type: "submit" }));
  replace(root, form, days, button("Show the week before", load));
  await load();
}

async function drawDay(day, filter, memory) {
  const list = h("div");
  const load = async (cursor) => {
    const page = await memory.call("query_timeline", { date_from: day, date_to: day, limit: PAGE, ...filter, ...(cursor && { cursor }) });
    list.append(...page.events.map(eventLine));
    if (page.next) {
      const more = button("More of this day", async () => {
        await load(page.next);
        more.remove();
      });
      list.append(more);
    }
    return page.events.length;
  };
  return (await load()) ? h("section", h("h2", dayTitle(day)), list) : null;
}

function eventLine(event) {
  const what = { said: "you said", superseded: "corrected" }[event.what] ?? event.what;
  return h("div.line", time(event.at, "clock"), " ", badge(event.category.replace("_", " ")), ` ${what}: ${event.text}`, event.after && ` → ${event.after}`, event.trust === "untrusted" && [" ", foreignBadge()]);
}

// Profile and persona

async function drawProfile(root, memory) {
  const held = await memory.call("get_profile");
  const fields = [...leaves(held.profile.user ?? {}, ["user"])].map(([path, value]) => ({ path, value, label: path.slice(1).join(" › ") }));
  const again = () => drawProfile(root, memory);
  const name = makeField({ name: "name", label: "New field", hint: "As in city, or address.street." });
  const value = makeField({ name: "value", label: "Its value" });
  const added = () => (name.read().trim() ? [[["user", ...name.read().trim().split(".")], value.read()]] : []);
  replace(
    root,
    h("p", "What matters about you in every conversation. Empty a field to remove it. A change counts from the next message on."),
    fields.length ? null : h("p.empty", "The profile is empty. Add a field, or tell Annabelle about yourself."),
    profileForm(fields, held, memory, again, { more: [name.element, value.element], added }),
    await drawVersions(memory, again),
  );
}

async function drawPersona(root, memory) {
  const [held, texts] = await Promise.all([memory.call("get_profile"), memory.session.owner ? get(`/agents/${encodeURIComponent(memory.agent)}/persona`) : null]);
  const persona = held.profile.persona ?? {};
  const again = () => drawPersona(root, memory);
  const lines = (name, label) => ({ path: ["persona", name], label, value: persona[name] ?? [] });
  const fields = [
    { path: ["persona", "name"], label: "Name", value: persona.name ?? "" },
    { path: ["persona", "style"], label: "Style", value: persona.style ?? "" },
    { path: ["persona", "tone"], label: "Tone", value: persona.tone ?? "" },
    { path: ["persona", "system_prompt"], label: "Who it is, in your own words", value: persona.system_prompt ?? "", long: true },
    lines("capabilities", "What it is good at"),
    lines("proactive_behaviours", "What it does without being asked"),
  ];
  const inForce = texts?.setting ? "setting" : texts?.file ? "file" : Object.keys(persona).length ? "profile" : "default";
  const title = (name, label) => h("h2", label, " ", texts && name === inForce && badge("in force", "good"));
  replace(
    root,
    h("p", "Who Annabelle is: the first of these that says something is in force. A change counts from the next message on."),
    texts?.setting ? [title("setting", "The setting systemPrompt"), h("p.hint", "It stands in config/agents.json; change it there."), h("p.plain", texts.setting)] : null,
    texts && [title("file", "Instructions of your own"), personaFile(texts, memory, again)],
    title("profile", "The persona of the profile"),
    profileForm(fields, held, memory, again),
    title("default", "The default"),
    texts ? details("Read it", markdown(texts.default)) : h("p.hint", "It counts where nothing else is said."),
    await drawVersions(memory, again),
  );
}

function personaFile(texts, memory, again) {
  const field = makeField({ name: "text", label: "The text", kind: "textarea", rows: 10, value: texts.file || texts.default, hint: "Kept in instructions.md of the agent. Empty it to go back to the default." });
  const save = async () => {
    if (field.read() === field.before) return toast("Nothing to change.");
    const saved = await post(`/agents/${encodeURIComponent(memory.agent)}/persona`, { text: field.read() });
    toast(saved.file ? "Saved." : "It is the default again.");
    await again();
  };
  return h("section.card", field.element, button("Save the instructions", save, { className: "primary" }));
}

/** Every field that holds a value, with its path. */
function* leaves(section, path) {
  for (const [name, value] of Object.entries(section)) {
    if (value && typeof value === "object" && !Array.isArray(value)) yield* leaves(value, [...path, name]);
    else yield [[...path, name], value];
  }
}

/** Sends only what was changed, so that what others change meanwhile stays. */
function profileForm(fields, held, memory, again, { more = [], added = () => [] } = {}) {
  const note = (path) => (held.untrusted_fields.includes(path.join(".")) ? "Others may have written this." : "");
  const inputs = fields.map((one) => ({ ...one, input: valueField(one.label, one.value, { rows: one.long ? 8 : 3, note: note(one.path) }) }));
  const save = async () => {
    const changed = inputs.filter((one) => one.input.read() !== one.input.before);
    const changes = changed.map((one) => [one.path, one.input.read().trim() ? one.input.value() : null]);
    const updates = {};
    for (const [path, value] of [...changes, ...added()]) {
      let place = updates;
      for (const name of path.slice(0, -1)) place = place[name] ??= {};
      place[path.at(-1)] = value;
    }
    if (!Object.keys(updates).length) return toast("Nothing to change.");
    const done = await memory.call("update_profile", { updates, reason: "changed on the page" });
    toast(done.changed.length ? `Saved as version ${done.version}.` : "Nothing to change.");
    await again();
  };
  return h("form.card", { onsubmit: (event) => event.preventDefault() }, inputs.map((one) => one.input.element), more, button("Save", save, { type: "submit", className: "primary" }));
}

async function drawVersions(memory, again) {
  const { versions } = await memory.call("profile_history");
  const back = (version) => async () => {
    await memory.call("rollback_profile", { version });
    toast(`The profile reads as in version ${version} again.`);
    await again();
  };
  const columns = [
    { label: "Version", cell: (one) => String(one.version) },
    { label: "When", cell: (one) => time(one.changed_at) },
    { label: "Changed", cell: (one) => one.changed.join(", ") },
    { label: "Why", cell: (one) => one.reason },
    { label: "Go back", cell: (one) => one !== versions[0] && button("Go back to this", back(one.version), { "aria-label": `Go back to version ${one.version}` }) },
  ];
  return details("Earlier versions", table(columns, versions, { caption: "Versions of the profile, newest first", empty: "The profile was never changed." }));
}

// Forgetting

async function drawForget(root, memory) {
  const id = Number(memory.query.get("fact")) || null;
  const known = id && (await memory.call("explain_fact", { fact_id: id })).fact;
  const field = known
    ? makeField({ name: "source", label: "Also what was said where it came from", kind: "checkbox" })
    : makeField({ name: "text", label: "What to forget, word for word", kind: "textarea", rows: 3, hint: "It is found whatever its case and spelling." });
  const asked = () => (known ? { factId: id, withSource: field.read() } : { text: field.read() });
  const place = h("div", { "aria-live": "polite" });
  field.input.addEventListener("input", () => replace(place));
  const look = async () => {
    const body = asked();
    const report = await post("/memory/forget", { ...body, preview: true });
    // What is shown is what will go, so it is not shown below other words.
    if (JSON.stringify(body) === JSON.stringify(asked())) replace(place, drawPreview(report, body, memory, place));
  };
  replace(
    root,
    h("p", "Forgetting removes something for good: from facts, conversations, sessions, indexes, logs, exports and backups. First you see where it stands."),
    known && h("blockquote", known.fact),
    h("form.card", { onsubmit: (event) => event.preventDefault() }, field.element, button("Look where it stands", look, { type: "submit", className: "primary" })),
    place,
  );
}

function drawPreview(report, asked, memory, place) {
  const columns = [
    { label: "Where", cell: (one) => one.place },
    { label: "How many", cell: (one) => count(one.count) },
    { label: "Will be", cell: (one) => one.fate },
  ];
  const forget = async () => {
    const text = `${count(report.total)} places. It cannot be brought back. Annabelle stands still meanwhile; messages wait.`;
    if (!(await ask("Forget all of this for good?", [], { yes: "Forget", danger: true, text }))) return;
    if (report.total >= MANY && !(await ask(`These are ${count(report.total)} places. Is that really meant?`, [], { yes: "Forget all of them", danger: true }))) return;
    const done = await post("/memory/forget", { ...asked, preview: false });
    replace(place, h("p", { role: "status" }, `Forgotten in ${count(done.total)} places. It cannot be brought back. `, h("a", { href: memory.link("facts") }, "All facts")));
  };
  const facts = (list) => h("ul", list.map((one) => h("li", one.fact, one.current === false && " (old)")));
  const own = report.own.length ? [h("h3", "Your own files, which stay as they are"), h("ul", report.own.map((one) => h("li", one)))] : null;
  if (!report.places.length) {
    const near = report.near.map((one) => h("li", one.fact, " ", h("a", { href: memory.link("forget", { fact: one.id }) }, "Forget this one …")));
    return [h("h2", "It stands nowhere in these words."), near.length ? [h("h3", "Facts that mean something like it"), h("ul", near)] : null, own];
  }
  return [
    h("h2", "Everything that will go"),
    table(columns, report.places, { caption: "Where it stands" }),
    report.facts.length ? [h("h3", "Facts"), facts(report.facts)] : null,
    own,
    h("div.row", button("Forget all of this …", forget, { className: "danger" })),
  ];
}
