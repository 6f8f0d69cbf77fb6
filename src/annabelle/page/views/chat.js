// Conversations of every channel in one list, and one of them with its live turns.
import { get, getBlob, hubNow, Outbox, post, upload } from "../api.js";
import { badge, button, bytes, capitalize, describeError, details, draft, h, money, onEnter, replace, time, toast, valueList } from "../dom.js";
import { drawRows, onNews } from "../live.js";
import { markdown } from "../markdown.js";
import { approvalCard, approvalState, isOffered, ruleCard } from "./inbox.js";

const PAGE = 50;
const MOST_THREADS = 200;
const MOST_MISSED = 1000;
const SENT_FILE = /\(I sent you the file (received\/[^)\n]+)\)/g;
const RECEIVED_AT = /^.*\/(?:[\d-]{18}[0-9a-f]{4}-)?/;
// Calls after which there is a file: none that lists a folder or deletes.
const NAMES_FILE = /^(office_|filer_(read|create|update|move|copy)_file$)/;
const UNFINISHED = ["queued", "running"];
const OWN = { channel: "page", chatId: "main" };
const NEW = "A new conversation";
// What a channel is called for people, where that is not its name.
const PLACES = { cli: "the terminal", goal: "a goal", goal_creation: "a new goal", user_agent: "all your goals" };

export async function render(root, place) {
  const list = h("nav.threads", { "aria-label": "Conversations" });
  const pane = h("section.conversation", { "aria-label": "Conversation" });
  const { threads } = await get("/threads", { limit: MOST_THREADS });
  const [wanted] = place.rest;
  const own = threads.find((one) => one.channel === OWN.channel && one.chatId === OWN.chatId && !one.endedAt) ?? null;
  const thread = wanted ? (threads.find((one) => one.id === wanted) ?? (await get(`/threads/${wanted}`))) : own;
  replace(root, h("h1.hidden", "Chat"), list, pane);
  const update = drawThreads(list, threads, thread?.id);
  const conversation = new Conversation(pane, thread, place);
  const end = onNews(async () => update((await get("/threads", { limit: MOST_THREADS })).threads), ["message", "done"]);
  const close = () => {
    end();
    conversation.close();
  };
  try {
    await conversation.open();
  } catch (error) {
    close();
    throw error;
  }
  return close;
}

function threadName(thread) {
  if (thread.title) return thread.title;
  if (thread.channel === OWN.channel) return NEW;
  return thread.channel in PLACES ? capitalize(PLACES[thread.channel]) : thread.chatId;
}

function placeName(channel) {
  return PLACES[channel] ?? channel;
}

/** Returns what draws the list again. */
function drawThreads(list, threads, wanted) {
  const all = h("ul");
  const older = h("p.hint", "Older conversations are found by the search.");
  const update = (found) => {
    drawRows(all, found, (one) => one.id, (one) => threadLink(one, one.id === wanted));
    older.hidden = found.length < MOST_THREADS;
  };
  update(threads);
  const search = h("input", { type: "search", placeholder: "Search what was said", "aria-label": "Search what was said" });
  const results = h("div", { "aria-live": "polite" });
  let searching = 0;
  search.addEventListener("input", async () => {
    const turn = ++searching;
    await new Promise((resolve) => setTimeout(resolve, 250));
    if (turn !== searching) return;
    const words = search.value.trim();
    all.hidden = Boolean(words);
    if (!words) return replace(results);
    const found = await findMessages(words).catch((error) => h("p.problem", describeError(error)));
    if (turn === searching) replace(results, found);
  });
  replace(list, search, results, all, older);
  return update;
}

function threadLink(thread, current) {
  const about = [time(thread.updatedAt), thread.channel !== "page" && ` · ${placeName(thread.channel)}`, thread.endedAt && " · ended"];
  const parts = [h("span.beginning", threadName(thread)), h("span.hint", about)];
  return h("li", h("a", { href: `#/chat/${thread.id}`, "aria-current": current && "page" }, parts));
}

/** The hub reads so many messages at a time, and says where it stopped. */
async function findMessages(q, before = null) {
  const { messages, moreBefore } = await get("/threads/search", { q, limit: 30, before });
  const hit = (one) =>
    h("li", h("a", { href: `#/chat/${one.threadId}?at=${one.position}` }, h("span", one.excerpt), h("br"), placeName(one.channel), " · ", time(one.createdAt)));
  const none = moreBefore !== null ? "Nothing was found so far." : before === null ? "Nothing was found." : "That was all.";
  const more = button("Search further back", async () => more.replaceWith(...(await findMessages(q, moreBefore))));
  return [messages.length ? h("ul", messages.map(hit)) : h("p.empty", none), moreBefore !== null && more].filter(Boolean);
}

/** One thread: its newest page, older ones on scroll, and what happens now. */
class Conversation {
  constructor(pane, thread, place) {
    const at = place.query.get("at");
    Object.assign(this, { pane, thread, at, owner: place.session.owner, turns: new Map(), known: new Set(), questions: new Set(), first: null });
    Object.assign(this, { urls: [], outbox: new Outbox() });
    this.chat = thread ? { channel: thread.channel, chatId: thread.chatId } : OWN;
    this.log = h("div.log", { role: "log", "aria-live": "polite", "aria-label": "Messages", tabIndex: 0 });
    this.rules = h("div");
  }

  async open() {
    replace(this.pane, this.heading(), this.log, this.form());
    if (!this.thread) {
      replace(this.log, h("p.empty", "Say hello. Annabelle can look things up, remember, write files, keep your calendar, and asks before it does what cannot be undone."));
      this.input.focus();
      return;
    }
    this.listen();
    this.log.append(this.rules);
    const before = this.at ? Number(this.at) + 10 : Number.MAX_SAFE_INTEGER;
    const messages = await this.read({ before });
    this.prepend(messages);
    this.last = messages.at(-1)?.position;
    // Whoever comes from the search sees that place, which may be far from the end.
    this.gap = Boolean(this.at && this.last);
    await this.loadNewer();
    if (this.input) {
      this.endRules = onNews(() => this.drawRules(), ["approval", "done", "notice", "message"]);
      this.drawRules().catch(() => {});
    }
    this.log.addEventListener("scroll", () => this.onScroll());
    const found = this.at && this.log.querySelector(`[data-position="${CSS.escape(this.at)}"]`);
    if (found) found.scrollIntoView({ block: "center" });
    else this.toEnd();
    this.input?.focus();
  }

  close() {
    this.closed = true;
    this.unlisten?.();
    this.endRules?.();
    for (const url of this.urls) URL.revokeObjectURL(url);
  }

  async read(range) {
    return (await get(`/threads/${this.thread.id}/messages`, { limit: PAGE, ...range })).messages;
  }

  onScroll() {
    if (this.log.scrollTop < 200) this.loadOlder();
    if (this.isAtEnd()) this.loadNewer().catch((error) => toast(describeError(error), "error"));
  }

  heading() {
    return h(
      "div.row.heading",
      h("button", { type: "button", className: "only-phone", "aria-label": "All conversations", onclick: () => this.pane.parentElement.classList.add("list-first") }, "‹"),
      h("h2.beginning", this.thread ? threadName(this.thread) : NEW),
      this.thread && !this.thread.endedAt && this.thread.channel === "page" && button("New conversation", () => this.send("/new"), { className: "quiet" }),
    );
  }

  /** What is said in a chat app is answered there, so here one can only read along. */
  form() {
    if (this.thread && (!["page", "goal", "goal_creation", "user_agent", "api", "terminal"].includes(this.thread.channel) || this.thread.endedAt)) {
      return h("p.hint", this.thread.endedAt ? "This conversation has ended." : `Answer in ${placeName(this.thread.channel)}: what is said there stays there.`);
    }
    this.files = [];
    const { area, write } = draft(this.chat.channel, this.chat.chatId, { placeholder: "Write to Annabelle", "aria-label": "Your message", enterKeyHint: "send" });
    Object.assign(this, { input: area, write });
    this.attached = h("div.row.attached");
    const pick = h("input", { type: "file", multiple: true, hidden: true });
    pick.addEventListener("change", () => {
      this.attach(pick.files);
      pick.value = ""; // or the same file could not be chosen again
    });
    const add = this.owner && [pick, h("button", { type: "button", onclick: () => pick.click() }, "Add files")];
    const form = h(
      "form.composer",
      this.attached,
      this.input,
      h("div.row.end", add, h("button", { type: "submit", className: "primary" }, "Send")),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    this.input.addEventListener("keydown", onEnter(() => this.submit()));
    this.pane.addEventListener("drop", (event) => this.owner && this.attach(event.dataTransfer.files));
    return form;
  }

  attach(files) {
    for (const file of files) {
      const chip = badge(`${file.name} (${bytes(file.size)}) …`);
      this.attached.append(chip);
      this.uploading = Promise.resolve(this.uploading).then(() => this.upload(file, chip));
    }
  }

  async upload(file, chip) {
    try {
      const kept = await upload("/files", file, { name: file.name });
      chip.textContent = kept.path.replace(RECEIVED_AT, "");
      this.files.push({ mention: kept.mention, chip });
    } catch (error) {
      chip.remove();
      toast(describeError(error), "error");
    }
  }

  async submit() {
    await this.uploading; // what is on its way belongs to the message
    const text = this.input.value.trim();
    if (!text && !this.files.length) return;
    const files = this.files;
    this.files = [];
    this.write("");
    for (const { chip } of files) chip.remove();
    try {
      await this.send([text, ...files.map((one) => one.mention)].filter(Boolean).join("\n"));
    } catch (error) {
      this.write([text, this.input.value].filter(Boolean).join("\n"));
      this.files.unshift(...files);
      this.attached.prepend(...files.map((one) => one.chip));
      toast(describeError(error), "error");
    }
  }

  async send(text) {
    const made = await this.outbox.send(text, (externalId) => post("/message", { text, ...this.chat, externalId }));
    if (this.closed) return;
    if (made.threadId !== this.thread?.id || this.gap) {
      location.hash = `#/chat/${made.threadId}`;
      return;
    }
    const said = { id: made.messageId, source: "user", text, createdAt: new Date(hubNow()).toISOString(), state: made.state, position: made.position };
    // Its events may have been here before this answer.
    if (!this.known.has(said.id)) this.show(said);
    if (made.reply) this.show(made.reply);
    this.toEnd();
  }

  listen() {
    const apply = ({ detail }) => [this.thread.id, undefined].includes(detail.thread_id) && this.apply(detail);
    window.addEventListener("annabelle", apply);
    this.unlisten = () => window.removeEventListener("annabelle", apply);
  }

  async loadOlder() {
    if (this.loading || this.first === null || this.first <= 1) return;
    this.loading = true;
    const height = this.log.scrollHeight;
    try {
      const messages = await this.read({ before: this.first });
      if (messages.length) this.prepend(messages);
      else this.first = 0;
      this.log.scrollTop += this.log.scrollHeight - height;
    } catch (error) {
      toast(describeError(error), "error");
    } finally {
      this.loading = false;
    }
  }

  /** Up to the end, from where what happens now is shown. */
  async loadNewer() {
    if (!this.gap || this.loadingNewer) return;
    this.loadingNewer = true;
    try {
      const messages = await this.read({ after: this.last });
      for (const one of messages) this.show(one);
      this.last = messages.at(-1)?.position ?? this.last;
      this.gap = messages.filter((one) => one.type === "text").length === PAGE;
    } finally {
      this.loadingNewer = false;
    }
    if (!this.gap) await this.catchUp();
  }

  prepend(messages) {
    if (!messages.length) return;
    this.first = messages[0].position;
    const shown = messages.filter((one) => !this.known.has(one.id)).map((one) => this.entry(one));
    this.log.prepend(...shown);
    for (const one of messages) this.follow(one);
  }

  /** What is stored tells of a turn that began or ended while no event came. */
  follow({ id, type, state }) {
    if (type === "tool") return;
    if (UNFINISHED.includes(state)) this.turn(id);
    else this.endTurn(id);
  }

  show(message) {
    this.follow(message);
    if (this.known.has(message.id)) return this.renewError(message);
    this.log.querySelector(":scope > .empty")?.remove();
    // One's own words may be there before what was said earlier and missed.
    const earlier = [...this.log.children].findLast((one) => Number(one.dataset.position ?? Infinity) <= message.position);
    const made = this.entry(message);
    if (earlier) earlier.after(made);
    else this.log.prepend(made);
  }

  entry(message) {
    this.known.add(message.id);
    if (message.type === "tool") return this.tool(message);
    const own = message.source === "user" || message.source === "command";
    const said = this.owner ? message.text.replace(SENT_FILE, "").trim() : message.text;
    const body = own ? h("div.plain", said) : markdown(message.text);
    const who = own ? "You" : message.source === "error" ? "Error" : "Annabelle";
    const about = { className: `message ${own ? "own" : message.source}`, data: { id: message.id, position: message.position } };
    const element = h("article", about, h("h3.hidden", who), body, this.footer(message));
    if (message.source === "error") element.append(this.errorButtons(message));
    for (const id of message.metadata?.approvals ?? []) element.append(this.question(id, body));
    this.addFiles(element, message);
    return element;
  }

  footer(message) {
    const cost = message.metadata?.usage?.cost_usd;
    const trace = message.traceId && message.replyTo && this.owner && [" · ", h("a", { href: `#/traces/${message.traceId}` }, "how it came about")];
    return h("p.hint", time(message.createdAt), message.model && ` · ${message.model}`, cost > 0 && ` · ${money(cost)}`, trace);
  }

  errorButtons(message) {
    const about = message.metadata ?? {};
    if (about.dismissed || about.retried_as) return h("p.hint", about.dismissed ? "Dismissed." : "Tried again.");
    const answer = (what, fact) => async () => {
      await post(`/threads/${this.thread.id}/messages/${message.id}/${what}`);
      this.renewError({ ...message, metadata: { ...about, [fact]: true } });
      await this.catchUp();
    };
    const again = () => {
      this.input.value = this.log.querySelector(`[data-id="${CSS.escape(message.replyTo)}"] .plain`)?.textContent ?? "";
      this.input.focus();
    };
    const retry = about.retryable !== false ? button("Try again", answer("retry", "retried_as")) : this.input && message.replyTo && button("Change and send again", again);
    return h("div.row", retry, button("Dismiss", answer("dismiss", "dismissed"), { className: "quiet" }));
  }

  /** An error that was answered, here or in another tab, is answered no more. */
  renewError(message) {
    const { dismissed, retried_as: retried } = message.metadata ?? {};
    const shown = (dismissed || retried) && this.log.querySelector(`[data-id="${CSS.escape(message.id)}"]`);
    if (shown && message.source === "error" && shown.querySelector("button")) shown.replaceWith(this.entry(message));
  }

  /** Rules that want a yes or no, wherever they were said. */
  async drawRules() {
    const offered = (await get("/rules")).rules.filter(isOffered);
    const atEnd = this.isAtEnd();
    drawRows(this.rules, offered, (one) => one.id, (one) => ruleCard(one, () => this.drawRules()));
    if (atEnd) this.toEnd();
  }

  /** The question of a call, answered where it was asked. Its words, which are for a terminal, need not be shown, too. */
  question(id, words) {
    const place = h("div");
    const draw = async () => {
      const asked = await get(`/approvals/${id}`);
      if (asked.state === "pending" && place.firstChild) return;  // somebody may be changing it
      const atEnd = this.isAtEnd();
      words.hidden = true;
      if (atEnd) requestAnimationFrame(() => this.toEnd());
      replace(place, asked.state === "pending" ? approvalCard(asked, draw) : h("p", h("strong", asked.tool), " ", approvalState(asked)));
      if (!["pending", "approved"].includes(asked.state)) this.questions.delete(draw);
    };
    this.questions.add(draw);
    draw().catch((error) => replace(place, h("p.problem", describeError(error))));
    return place;
  }

  /** Files of the workspace that came with a message are shown or offered. */
  addFiles(element, message) {
    if (!this.owner) return;
    for (const [, path] of message.text.matchAll(SENT_FILE)) element.append(this.file(path));
  }

  file(path) {
    const place = h("div.file");
    const atEnd = this.isAtEnd();
    const load = async () => {
      const blob = await getBlob("/files", { path });
      const url = URL.createObjectURL(blob);
      this.urls.push(url);
      return { blob, url };
    };
    const name = path.replace(RECEIVED_AT, "");
    const offer = button(`Download ${name}`, async () => {
      const { url } = await load();
      h("a", { href: url, download: name }).click();
    });
    place.append(offer);
    if (/\.(png|jpe?g|gif|webp)$/i.test(path)) {
      load().then(({ url }) => place.prepend(h("img", { src: url, alt: name, onload: () => atEnd && this.toEnd() })), () => {});
    }
    return place;
  }

  /** A call that names a file of the workspace offers it. */
  tool({ metadata: cell, position }) {
    const shown = toolCell(cell);
    const path = cell.status === "success" && NAMES_FILE.test(cell.name) ? (cell.input?.destination ?? cell.input?.path) : null;
    return h("div", { data: { position } }, shown, this.owner && typeof path === "string" && this.file(path));
  }

  turn(id) {
    if (!this.turns.has(id)) this.turns.set(id, new LiveTurn(this, id));
    return this.turns.get(id);
  }

  async apply(event) {
    if (this.gap) return;
    const atEnd = this.isAtEnd();
    if (event.type === "done") this.endTurn(event.message_id);
    // What is said about an earlier turn, as that its question was taken back, does not begin it again.
    const aside = event.type === "notice" && (event.data.approval_id || event.data.rule_id || !this.turns.has(event.message_id));
    if (["done", "message", "approval", "error"].includes(event.type) || aside) {
      for (const draw of this.questions) draw().catch(() => {});
      await this.catchUp();
      if (event.type === "notice") this.turns.get(event.message_id)?.apply(event);
    } else this.turn(event.message_id).apply(event);
    if (atEnd) this.toEnd();
  }

  endTurn(id) {
    this.turns.get(id)?.element.remove();
    this.turns.delete(id);
  }

  /** Reads the end of the thread again: what it shows then is what is stored. Many calls at once are one look. */
  catchUp() {
    this.behind = true;
    this.reading ??= this.readEnd().catch(() => {}).finally(() => (this.reading = null));
    return this.reading;
  }

  async readEnd() {
    while (this.behind && !this.closed) {
      this.behind = false;
      const missed = [];
      let found = [{ position: Number.MAX_SAFE_INTEGER }];
      // As far back as nothing is known; much may have been said while this machine slept.
      do {
        found = await this.read({ before: found[0].position });
        missed.unshift(...found);
      } while (found.length && !found.some((one) => this.known.has(one.id)) && missed.length < MOST_MISSED);
      for (const one of missed) this.show(one);
    }
  }

  isAtEnd() {
    return this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < 120;
  }

  toEnd() {
    this.log.scrollTop = this.log.scrollHeight;
  }
}

/** What a turn does right now. A later attempt of a step replaces the earlier one. */
class LiveTurn {
  constructor(conversation, id) {
    Object.assign(this, { conversation, id, step: -1, attempt: -1, text: "", cells: new Map(), drawing: false });
    this.words = h("div");
    this.tools = h("div");
    this.notice = h("p.hint", { role: "status" }, "Annabelle is at work …");
    const stop = button("Stop", () => post(`/messages/${id}/cancel`), { className: "danger" });
    this.element = h("article.message.agent.live", { "aria-busy": "true" }, this.tools, this.words, this.notice, stop);
    conversation.log.append(this.element);
  }

  apply(event) {
    const data = event.data;
    if (event.type === "text") this.addText(event);
    else if (event.type === "tool_start") this.cell({ id: data.call_id, name: data.name, status: "in_progress", input: data.arguments, message: `Calling ${data.name} …` });
    else if (event.type === "tool_complete") this.endCell(data);
    else if (event.type === "notice" && (data.text || data.message)) this.notice.textContent = data.text || data.message;
    else if (event.type === "think") this.notice.textContent = "Thinking …";
  }

  endCell(data) {
    const status = { success: "success", waiting: "in_progress" }[data.status] ?? "failure";
    const message = { success: `Called ${data.name}.`, in_progress: `Calling ${data.name} waits for your answer.`, failure: `Calling ${data.name} failed.` }[status];
    const result = { summary: data.summary, duration_ms: data.duration_ms };
    this.cell({ ...this.cells.get(data.call_id)?.about, id: data.call_id, name: data.name, status, data: result, error: data.error, message });
  }

  addText(event) {
    if (event.step < this.step || (event.step === this.step && event.attempt < this.attempt)) return;
    if (event.step !== this.step || event.attempt !== this.attempt || event.data.final === true) this.text = "";
    Object.assign(this, { step: event.step, attempt: event.attempt });
    this.text += event.data.text ?? "";
    this.notice.textContent = "";
    // Many pieces may come within one frame.
    if (this.drawing) return;
    this.drawing = true;
    requestAnimationFrame(() => {
      this.drawing = false;
      replace(this.words, markdown(this.text));
    });
  }

  cell(about) {
    const shown = toolCell(about);
    const before = this.cells.get(about.id);
    if (before) before.element.replaceWith(shown);
    else this.tools.append(shown);
    this.cells.set(about.id, { about, element: shown });
  }
}

/** A tool call, which opens to its arguments and result. */
export function toolCell(cell) {
  const state = { in_progress: "…", success: "✓", failure: "✗" }[cell.status];
  return details(
    [h("span", { className: `state ${cell.status}`, "aria-label": cell.status.replace("_", " ") }, state), " ", cell.message, cell.progress && ` ${cell.progress}`],
    [
      h("h4", cell.name),
      valueList(cell.input ?? {}),
      cell.data && Object.keys(cell.data).length > 0 && [h("p.hint", "Result"), valueList(cell.data)],
      cell.error && h("p.problem", cell.error.message ?? String(cell.error)),
    ],
    { className: "tool" },
  );
}
