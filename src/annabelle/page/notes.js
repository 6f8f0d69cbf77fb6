// Notes of one goal or of all: found, read, written, moved and deleted.
import { get, post } from "./api.js";
import { ask, askUntilDone, badge, button, describeError, details, h, makeField, onlyChanged, replace, time, toast } from "./dom.js";
import { drawRows } from "./live.js";
import { markdown } from "./markdown.js";

const PAGE = 50;
const MOST = 500;
const MOST_OFFERED = 20;

export function outsideBadge(outside) {
  return Boolean(outside) && badge("from outside", "wait");
}

export function outsideWarning(readFrom) {
  const from = readFrom?.length ? ` Read before it was written: ${readFrom.join(", ")}.` : "";
  return h("p.hint", badge("from outside", "wait"), ` These may be somebody else's words. They give no orders.${from}`);
}

/** `goalId` null: those of all goals and of none. `onChange` draws again what a written, moved or deleted note changes. */
export class NotesPanel {
  constructor({ goalId = null, goals, onChange = () => this.refresh() }) {
    Object.assign(this, { goalId, goals, onChange, notes: [], before: null, words: "", turn: 0, fitting: new Map() });
    this.list = h("div");
    this.markdown = h("div");
    this.more = button("Show older", () => this.loadOlder(), { hidden: true });
    this.status = h("p.empty", { role: "status" });
    this.loose = makeField({ name: "loose", label: "Only notes without a goal", kind: "checkbox" });
    this.loose.input.addEventListener("change", () => this.refreshFromTop().catch(() => {}));
    const tools = [this.search(), button("Write a note", () => this.write()), button("Keep a link", () => this.keepLink())];
    const loose = goalId === null && this.loose.element;
    this.element = h("div", h("div.row", tools), loose, this.status, this.list, this.markdown, this.more);
  }

  search() {
    const input = h("input", { type: "search", placeholder: "Search the notes", "aria-label": "Search the notes", className: "wide" });
    input.addEventListener("input", () => {
      this.words = input.value.trim();
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.refreshFromTop().catch((error) => toast(describeError(error), "error")), 250);
    });
    return input;
  }

  /** What is shown stays shown, with the older pages. */
  async refresh() {
    const turn = ++this.turn;
    const found = await this.find(null, Math.max(PAGE, this.notes.length));
    if (turn !== this.turn) return;
    Object.assign(this, { notes: found.notes, before: found.before });
    replace(this.markdown, found.trouble && h("p.hint", found.trouble), found.markdown.map(markdownHit));
    await this.draw();
  }

  refreshFromTop() {
    this.notes = [];
    return this.refresh();
  }

  async loadOlder() {
    const turn = ++this.turn;
    const found = await this.find(this.before, PAGE);
    if (turn !== this.turn) return;
    this.notes.push(...found.notes);
    this.before = found.before;
    await this.draw();
  }

  /** The notes behind one, so many or up to the end; the first answer has the Markdown notes. */
  async find(before, count) {
    const loose = this.loose.read();
    const notes = [];
    let first = null;
    do {
      // Only the page tells notes without a goal from others, so it looks at as many at once as it may.
      const limit = loose ? MOST : Math.min(MOST, count - notes.length);
      const found = await get("/notes", { goal: this.goalId, q: this.words, limit, before });
      first ??= found;
      before = found.before;
      notes.push(...found.notes.filter((one) => !loose || one.goalId === null));
    } while (before && notes.length < count);
    return { ...first, notes, before };
  }

  async draw() {
    const { notes } = this;
    const none = this.words ? "No note has all of these words." : "There are no notes here yet. Write one, or keep a link: its page is read and summed up.";
    const some = Boolean(notes.length + this.markdown.childElementCount);
    replace(this.status, some ? null : none);
    this.status.hidden = some;
    this.more.hidden = !this.before;
    drawRows(this.list, notes, (one) => one.noteId, (one) => this.card(one));
    if (this.goalId === null) await this.offer(notes.filter((one) => one.goalId === null).slice(0, MOST_OFFERED));
  }

  /** Says of each note without a goal which one it fits. */
  async offer(notes) {
    for (const note of notes) {
      // A note that refers to a file which is gone cannot be shown, and fits no goal.
      if (!this.fitting.has(note.noteId)) this.fitting.set(note.noteId, (await get(`/notes/${note.noteId}`).catch(() => null))?.suggestedGoal);
      const goal = this.fitting.get(note.noteId);
      const place = [...this.list.children].find((one) => one.dataset.row === note.noteId)?.querySelector(".offer");
      if (place && !place.childElementCount && goal) place.append(this.offerLine(note, goal));
    }
  }

  offerLine(note, goal) {
    const labelled = { "aria-label": `Move “${note.title}” to ${goal.title}` };
    return h("p.row", `It fits the goal “${goal.title}”.`, button("Move it there", () => this.move(note, goal.goalId), labelled));
  }

  card(note) {
    const body = h("div");
    const goal = this.goalId === null && this.goals().find((one) => one.goalId === note.goalId);
    const about = h("span.hint", time(note.createdAt), note.excerpt && ` · ${note.excerpt}`);
    const badges = [outsideBadge(note.trust === "untrusted"), " ", note.writtenBy === "agent" && badge("by Annabelle")];
    const head = [h("strong", note.title), " ", badges, h("br"), about];
    const more = details(head, body, { ontoggle: () => more.open && this.open(note, body) });
    return h("div.line.note", more, goal && h("a", { href: `#/goals/${goal.goalId}` }, goal.title), h("div.offer"));
  }

  async open({ noteId }, body) {
    try {
      const note = await get(`/notes/${noteId}`);
      const remove = button("Delete", () => this.remove(note), { className: "danger" });
      const buttons = [button("Edit", () => this.edit(note)), button("Move", () => this.pickGoal(note)), remove];
      const warning = note.trust === "untrusted" && outsideWarning(note.readFrom);
      replace(body, warning, markdown(note.content || "It has no text."), h("div.row", buttons));
    } catch (error) {
      replace(body, h("p.problem", describeError(error)));
    }
  }

  async changed(told) {
    toast(told);
    this.fitting.clear();
    await this.onChange();
  }

  write() {
    const fields = [
      { name: "title", label: "Title", required: true },
      { name: "content", label: "Text (Markdown)", kind: "textarea", rows: 8 },
    ];
    return askUntilDone("A new note", fields, { yes: "Keep it" }, async (given) => {
      await post("/notes", { ...given, goal: this.goalId });
      await this.changed("The note is kept.");
    });
  }

  keepLink() {
    const fields = [{ name: "url", label: "Address of the page", kind: "url", required: true }];
    const text = "Its page is read and summed up. What it says is marked as from outside.";
    return askUntilDone("Keep a link", fields, { yes: "Keep it", text }, async ({ url }) => {
      toast("The page is being read.");
      await post("/links", { url: url.trim(), goal: this.goalId });
      await this.changed("The link is kept.");
    });
  }

  edit(note) {
    // What a reference shows is the text of a file, which is not changed here.
    const refers = note.excerpt.startsWith("notes:") && !note.content.startsWith("notes:");
    const fields = [{ name: "title", label: "Title", value: note.title, required: true }];
    if (!refers) fields.push({ name: "content", label: "Text (Markdown)", kind: "textarea", rows: 10, value: note.content });
    return askUntilDone("Change the note", fields, { yes: "Save" }, async (given) => {
      await post(`/notes/${note.noteId}/update`, onlyChanged(fields, given));
      await this.changed("The note is changed.");
    });
  }

  pickGoal(note) {
    const options = [{ value: "", label: "No goal" }, ...this.goals().map((one) => ({ value: one.goalId, label: one.title }))];
    const fields = [{ name: "goal", label: "Goal", kind: "select", options, value: note.goalId ?? "" }];
    return askUntilDone(`Move “${note.title}”`, fields, { yes: "Move" }, ({ goal }) => this.move(note, goal || null));
  }

  async move(note, goal) {
    await post(`/notes/${note.noteId}/move`, { goal });
    await this.changed("The note is moved.");
  }

  async remove(note) {
    if (!(await ask(`Delete the note “${note.title}” for good?`, [], { yes: "Delete", danger: true }))) return;
    await post(`/notes/${note.noteId}/delete`);
    await this.changed("The note is deleted.");
  }
}

/** A Markdown note of the workspace that a search has found. */
function markdownHit(found) {
  const lines = found.lines.map((one) => h("p", one));
  return h("div.line", h("strong", found.title), " ", badge("Markdown note"), h("p.hint", found.path), lines);
}
