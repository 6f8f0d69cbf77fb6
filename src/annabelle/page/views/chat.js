// Conversations of every channel in one list, and one of them with its live turns.
import { get, getBlob, hubNow, post, stream, upload } from "../api.js";
import { badge, button, bytes, codeBlock, describeError, details, h, money, onEnter, replace, time, toast } from "../dom.js";
import { markdown } from "../markdown.js";
import { approvalCard } from "./inbox.js";

const PAGE = 50;
const SENT_FILE = /\(I sent you the file (received\/[^)\n]+)\)/g;
// Calls after which there is a file: none that lists a folder or deletes.
const NAMES_FILE = /^(office_|filer_(read|create|update|move|copy)_file$)/;
const OWN = { channel: "page", chatId: "main" };

export async function render(root, place) {
  const list = h("nav", { className: "threads", "aria-label": "Conversations" });
  const pane = h("section", { className: "conversation", "aria-label": "Conversation" });
  replace(root, h("h1", { className: "hidden" }, "Chat"), list, pane);
  const { threads } = await get("/threads", { limit: 200 });
  const [wanted] = place.rest;
  drawThreads(list, threads, wanted);
  const thread = threads.find((one) => one.id === wanted) ?? threads.find((one) => one.channel === OWN.channel && !one.endedAt) ?? null;
  const conversation = new Conversation(pane, thread, place);
  await conversation.open();
  return () => conversation.close();
}

function threadName(thread) {
  return thread.channel === "page" ? (thread.chatId === "main" ? "This page" : thread.chatId) : `${thread.channel} · ${thread.chatId}`;
}

function drawThreads(list, threads, wanted) {
  const results = h("div", { "aria-live": "polite" });
  const all = h(
    "ul",
    {},
    threads.map((one) =>
      h("li", {}, h("a", { href: `#/chat/${one.id}`, "aria-current": one.id === wanted ? "page" : null }, h("span", {}, threadName(one)), " ", one.endedAt && badge("ended"), h("br"), time(one.updatedAt))),
    ),
  );
  const search = h("input", { type: "search", placeholder: "Search what was said", "aria-label": "Search what was said" });
  let searching = 0;
  search.addEventListener("input", async () => {
    const turn = ++searching;
    await new Promise((resolve) => setTimeout(resolve, 250));
    if (turn !== searching) return;
    all.hidden = Boolean(search.value.trim());
    if (!search.value.trim()) return replace(results);
    try {
      const found = (await get("/threads/search", { q: search.value, limit: 30 })).messages;
      if (turn !== searching) return;
      const shown = found.map((one) => h("li", {}, h("a", { href: `#/chat/${one.threadId}?at=${one.position}` }, h("span", {}, one.excerpt), h("br"), one.channel, " · ", time(one.createdAt))));
      replace(results, shown.length ? h("ul", {}, shown) : h("p", { className: "empty" }, "Nothing was found."));
    } catch (error) {
      replace(results, h("p", { className: "problem" }, describeError(error)));
    }
  });
  replace(list, h("div", { className: "row" }, search, h("a", { className: "button", href: "#/chat" }, "This page")), results, all);
}

/** One thread: its newest page, older ones on scroll, and what happens now. */
class Conversation {
  constructor(pane, thread, place) {
    const at = place.query.get("at");
    Object.assign(this, { pane, thread, at, owner: place.session.owner, turns: new Map(), questions: new Map(), known: new Set(), first: null, closeStream: null });
    this.log = h("div", { className: "log", role: "log", "aria-live": "polite", "aria-label": "Messages", tabIndex: 0 });
    this.news = h("div", { className: "row" });
  }

  async open() {
    replace(this.pane, this.heading(), this.log, this.news, this.form());
    this.log.addEventListener("scroll", () => this.log.scrollTop < 200 && this.loadOlder());
    if (!this.thread) {
      replace(this.log, h("p", { className: "empty" }, "Say hello. Annabelle can look things up, remember, write files, keep your calendar, and asks before it does what cannot be undone."));
      this.input.focus();
      return;
    }
    this.listen();
    const before = this.at ? Number(this.at) + 10 : Number.MAX_SAFE_INTEGER;
    const { messages } = await get(`/threads/${this.thread.id}/messages`, { before, limit: PAGE });
    this.prepend(messages);
    const found = this.at && this.log.querySelector(`[data-position="${CSS.escape(this.at)}"]`);
    if (found) found.scrollIntoView({ block: "center" });
    else this.toEnd();
    this.input?.focus();
  }

  close() {
    this.closeStream?.();
    for (const url of this.urls ?? []) URL.revokeObjectURL(url);
  }

  heading() {
    const name = this.thread ? threadName(this.thread) : "This page";
    return h(
      "div",
      { className: "row heading" },
      h("button", { type: "button", className: "only-phone", "aria-label": "All conversations", onclick: () => this.pane.parentElement.classList.add("list-first") }, "‹"),
      h("h2", {}, name),
      this.thread && badge(this.thread.agentId),
      this.thread && !this.thread.endedAt && this.thread.channel === "page" && button("New conversation", () => this.send("/new"), { className: "quiet" }),
    );
  }

  /** What is said in a chat app is answered there, so here one can only read along. */
  form() {
    if (this.thread && (!["page", "goal", "goal_creation", "user_agent", "api", "terminal"].includes(this.thread.channel) || this.thread.endedAt)) {
      return h("p", { className: "hint" }, this.thread.endedAt ? "This conversation has ended." : `Answer in ${this.thread.channel}: what is said there stays there.`);
    }
    this.files = [];
    this.input = h("textarea", { rows: 2, placeholder: "Write to Annabelle", "aria-label": "Your message", enterKeyHint: "send" });
    this.attached = h("div", { className: "row attached" });
    const pick = h("input", { type: "file", multiple: true, hidden: true, onchange: () => this.attach(pick.files) });
    const add = this.owner && [pick, h("button", { type: "button", onclick: () => pick.click() }, "Add files")];
    const form = h(
      "form",
      { className: "composer" },
      this.attached,
      this.input,
      h("div", { className: "row end" }, add, h("button", { type: "submit", className: "primary" }, "Send")),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    this.input.addEventListener("keydown", onEnter(() => this.submit()));
    for (const name of ["dragover", "drop"]) {
      this.pane.addEventListener(name, (event) => {
        event.preventDefault();
        if (name === "drop" && this.owner) this.attach(event.dataTransfer.files);
      });
    }
    return form;
  }

  async attach(files) {
    for (const file of files) {
      const chip = badge(`${file.name} (${bytes(file.size)}) …`);
      this.attached.append(chip);
      try {
        const kept = await upload("/files", file, { name: file.name });
        this.files.push(kept.mention);
        chip.textContent = kept.path;
      } catch (error) {
        chip.remove();
        toast(describeError(error), "error");
      }
    }
  }

  async submit() {
    const text = this.input.value.trim();
    if (!text && !this.files.length) return;
    const whole = [text, ...this.files].filter(Boolean).join("\n");
    this.input.value = "";
    try {
      await this.send(whole);
      this.files = [];
      replace(this.attached);
    } catch (error) {
      this.input.value ||= text;
      toast(describeError(error), "error");
    }
  }

  async send(text) {
    const place = this.thread ? { channel: this.thread.channel, chatId: this.thread.chatId } : OWN;
    const made = await post("/message", { text, ...place, externalId: crypto.randomUUID() });
    if (made.threadId !== this.thread?.id) {
      location.hash = `#/chat/${made.threadId}`;
      return;
    }
    this.show({ id: made.messageId, source: "user", text, createdAt: new Date(hubNow()).toISOString(), state: made.state, position: "" });
    if (made.reply) this.show(made.reply);
    else this.turn(made.messageId);
    this.toEnd();
  }

  listen() {
    this.closeStream = stream(`/threads/${this.thread.id}/events`, {}, (event) => this.apply(event));
  }

  async loadOlder() {
    if (this.loading || this.first === null || this.first <= 1) return;
    this.loading = true;
    const height = this.log.scrollHeight;
    try {
      const { messages } = await get(`/threads/${this.thread.id}/messages`, { before: this.first, limit: PAGE });
      if (messages.length) this.prepend(messages);
      else this.first = 0;
      this.log.scrollTop += this.log.scrollHeight - height;
    } catch (error) {
      toast(describeError(error), "error");
    } finally {
      this.loading = false;
    }
  }

  prepend(messages) {
    if (!messages.length) return;
    this.first = messages[0].position;
    const shown = messages.filter((one) => !this.known.has(one.id)).map((one) => this.entry(one));
    this.log.prepend(...shown);
    for (const one of messages) if (one.type === "text" && ["queued", "running"].includes(one.state)) this.turn(one.id);
  }

  show(message) {
    if (this.known.has(message.id)) return;
    this.log.querySelector(":scope > .empty")?.remove();
    this.log.append(this.entry(message));
  }

  entry(message) {
    this.known.add(message.id);
    if (message.type === "tool") return this.tool(message.metadata);
    const own = message.source === "user" || message.source === "command";
    const body = own ? h("div", { className: "plain" }, message.text) : markdown(message.text);
    const element = h("article", { className: `message ${own ? "own" : message.source}`, data: { id: message.id, position: message.position } }, h("h3", { className: "hidden" }, own ? "You" : message.source === "error" ? "Error" : "Annabelle"), body, this.footer(message));
    if (message.source === "error") element.append(this.errorButtons(message));
    for (const id of message.metadata?.approvals ?? []) element.append(this.question(id, body));
    this.addFiles(element, message);
    return element;
  }

  footer(message) {
    const cost = message.metadata?.usage?.cost_usd;
    return h("p", { className: "hint" }, time(message.createdAt), message.model && ` · ${message.model}`, cost > 0 && ` · ${money(cost)}`, message.traceId && message.replyTo && this.owner && [" · ", h("a", { href: `#/traces/${message.traceId}` }, "how it came about")]);
  }

  errorButtons(message) {
    const about = message.metadata ?? {};
    if (about.dismissed || about.retried_as) return h("p", { className: "hint" }, about.dismissed ? "Dismissed." : "Tried again.");
    const place = h("div", { className: "row" });
    const answer = (what, told) => async () => {
      const made = await post(`/threads/${this.thread.id}/messages/${message.id}/${what}`);
      replace(place, h("p", { className: "hint" }, told));
      if (made.messageId) this.turn(made.messageId);
    };
    return replace(place, about.retryable !== false && button("Try again", answer("retry", "Tried again.")), button("Dismiss", answer("dismiss", "Dismissed."), { className: "quiet" }));
  }

  /** The question of a call, answered where it was asked. Then its words need not be shown, too. */
  question(id, words) {
    const place = h("div");
    const draw = async () => {
      const asked = await get(`/approvals/${id}`);
      const atEnd = this.isAtEnd();
      if (asked.state === "pending") words.hidden = true;
      if (atEnd) requestAnimationFrame(() => this.toEnd());
      replace(place, asked.state === "pending" ? approvalCard(asked, draw) : h("p", { className: "hint" }, `${asked.tool}: ${asked.state}`));
    };
    const drawOrTell = () => draw().catch((error) => replace(place, h("p", { className: "problem" }, describeError(error))));
    this.questions.set(id, drawOrTell);
    drawOrTell();
    return place;
  }

  /** Files of the workspace that came with a message are shown or offered. */
  addFiles(element, message) {
    if (!this.owner) return;
    for (const [, path] of message.text.matchAll(SENT_FILE)) element.append(this.file(path));
  }

  file(path) {
    const place = h("div", { className: "file" });
    const load = async () => {
      const blob = await getBlob("/files", { path });
      const url = URL.createObjectURL(blob);
      (this.urls ??= []).push(url);
      return { blob, url };
    };
    const offer = button(`Download ${path.split("/").at(-1)}`, async () => {
      const { url } = await load();
      h("a", { href: url, download: path.split("/").at(-1) }).click();
    });
    place.append(offer);
    if (/\.(png|jpe?g|gif|webp)$/i.test(path)) {
      load().then(({ url }) => place.prepend(h("img", { src: url, alt: path.split("/").at(-1) })), () => {});
    }
    return place;
  }

  /** A call that names a file of the workspace offers it. */
  tool(cell) {
    const shown = toolCell(cell);
    const path = cell.status === "success" && NAMES_FILE.test(cell.name) ? (cell.input?.destination ?? cell.input?.path) : null;
    return this.owner && typeof path === "string" ? h("div", {}, shown, this.file(path)) : shown;
  }

  turn(id) {
    if (!this.turns.has(id)) this.turns.set(id, new LiveTurn(this, id));
    return this.turns.get(id);
  }

  async apply(event) {
    const atEnd = this.isAtEnd();
    if (event.type === "done") {
      this.turns.get(event.message_id)?.remove();
      this.turns.delete(event.message_id);
      await this.catchUp();
    } else if (event.type === "notice" && event.data.approval_id) {
      // The turn that asked has ended; what follows the answer is another one.
      this.questions.get(event.data.approval_id)?.();
    } else this.turn(event.message_id).apply(event);
    if (atEnd) this.toEnd();
  }

  /** Reads the end of the thread again: what it shows then is what is stored. */
  async catchUp() {
    const { messages } = await get(`/threads/${this.thread.id}/messages`, { before: Number.MAX_SAFE_INTEGER, limit: 10 });
    for (const one of messages) this.show(one);
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
    this.notice = h("p", { className: "hint", role: "status" }, "Annabelle is at work …");
    this.element = h("article", { className: "message agent live", "aria-busy": "true" }, this.tools, this.words, this.notice, button("Stop", () => post(`/messages/${id}/cancel`), { className: "danger" }));
    conversation.log.append(this.element);
  }

  apply(event) {
    const data = event.data;
    if (event.type === "text") this.addText(event);
    else if (event.type === "tool_start") this.cell({ id: data.call_id, name: data.name, status: "in_progress", input: data.arguments, message: `Calling ${data.name} …` });
    else if (event.type === "tool_complete") this.endCell(data);
    else if (event.type === "notice" && (data.text || data.message)) this.notice.textContent = data.text || data.message;
    else if (event.type === "think") this.notice.textContent = "Thinking …";
    else if (event.type === "message" && data.message_id) this.conversation.catchUp();
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

  remove() {
    this.element.remove();
  }
}

/** A tool call, which opens to its arguments and result. */
export function toolCell(cell) {
  const state = { in_progress: "…", success: "✓", failure: "✗" }[cell.status];
  return details(
    [h("span", { className: `state ${cell.status}`, "aria-label": cell.status.replace("_", " ") }, state), " ", cell.message, cell.progress && ` ${cell.progress}`],
    [h("h4", {}, cell.name), h("p", { className: "hint" }, "Arguments"), codeBlock(cell.input ?? {}), cell.data && Object.keys(cell.data).length ? [h("p", { className: "hint" }, "Result"), codeBlock(cell.data)] : null, cell.error && h("p", { className: "problem" }, cell.error.message ?? String(cell.error))],
    { className: "tool" },
  );
}
