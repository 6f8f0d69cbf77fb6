// Speaks with the hub. A session has two halves: a cookie that no script can read, and a key of this origin, which no
// other program on this machine is sent. Both are needed, so every request is a fetch, also for streams and images.

const KEY = "annabelle-key";
const SILENCE = 60_000;

class ApiError extends Error {
  constructor(status, body) {
    super(body.message || `The hub answered with ${status}.`);
    Object.assign(this, { status, code: body.code, hint: body.hint, traceId: body.trace_id, field: body.field });
  }
}

const listeners = { lost: new Set(), back: new Set(), ended: new Set() };
let reachable = true;

export function on(event, listener) {
  listeners[event].add(listener);
  return () => listeners[event].delete(listener);
}

function tell(event) {
  if (event === "lost" ? !reachable : event === "back" && reachable) return;
  if (event !== "ended") reachable = event === "back";
  for (const listener of listeners[event]) listener();
  if (event === "lost") tryAgain();
}

async function tryAgain() {
  while (!reachable) {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    await fetch("/health").then(() => tell("back"), () => {});
  }
}

/** Whether this browser keeps what a session consists of. One that blocks cookies often throws where storage is named. */
export function canKeepSession() {
  try {
    return navigator.cookieEnabled && Boolean(localStorage);
  } catch {
    return false;
  }
}

// How far the hub's clock is ahead of the browser's, which may be wrong by years.
let ahead = 0;

/** What time it is at the hub. */
export function hubNow() {
  return Date.now() + ahead;
}

function keyHeaders() {
  const key = localStorage.getItem(KEY);
  return key ? { "X-Annabelle-Page": key } : {};
}

export function hasKey() {
  return Boolean(localStorage.getItem(KEY));
}

export function setKey(key) {
  if (key) localStorage.setItem(KEY, key);
  else localStorage.removeItem(KEY);
}

/** A new id. Under a name without TLS a browser has no `randomUUID`. */
export function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (one) => one.toString(16).padStart(2, "0")).join("");
}

/** Sends words. Those that are sent again, because nobody knows whether they arrived, keep the id they had. */
export class Outbox {
  async send(words, work) {
    if (words !== this.words) Object.assign(this, { words, id: newId() });
    const made = await work(this.id);
    this.words = null;
    return made;
  }
}

async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options, headers: { ...keyHeaders(), ...options.headers } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    tell("lost");
    throw new ApiError(0, { message: "Annabelle cannot be reached.", hint: "Is it running? annabelle up starts it." });
  }
  tell("back");
  ahead = Date.parse(response.headers.get("Date")) - Date.now() || 0;
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  const error = new ApiError(response.status, body.error || {});
  if (response.status === 401 && !path.startsWith("/sessions")) tell("ended");
  throw error;
}

function withQuery(path, query) {
  const given = Object.entries(query || {}).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(given).toString();
  return text ? `${path}?${text}` : path;
}

export async function get(path, query, options) {
  return (await request(withQuery(path, query), options)).json();
}

export async function post(path, body = {}, query) {
  const response = await request(withQuery(path, query), {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return text ? JSON.parse(text) : {};
}

export async function getBlob(path, query) {
  return (await request(withQuery(path, query))).blob();
}

export async function upload(path, file, query) {
  const response = await request(withQuery(path, query), { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: file });
  return response.json();
}

/** Calls a tool and returns its structured result. */
export async function callTool(name, args = {}) {
  const result = await post("/tools/call", { name, arguments: args });
  if (result.is_error) throw new ApiError(200, result.error || { message: result.text });
  return result.structured ?? result.text;
}

/** Reads an event stream until it is closed, and goes on where it stopped when the hub was away. Returns `close`. */
function stream(path, last, onEvent) {
  const stopped = new AbortController();
  let wait = 250;

  async function read() {
    const headers = last === null ? {} : { "Last-Event-ID": String(last) };
    const dead = new AbortController();
    let heard = Date.now();
    // A connection that slept with its machine may never end by itself; the hub says something at least every 15 seconds.
    const watch = setInterval(() => Date.now() - heard > SILENCE && dead.abort(), 5000);
    try {
      const response = await request(path, { headers, signal: AbortSignal.any([stopped.signal, dead.signal]) });
      wait = 250;
      // What happened before a stream that begins now has come by no event.
      if (last === null) onEvent({ type: "done" });
      await take(response.body, () => (heard = Date.now()));
    } finally {
      clearInterval(watch);
    }
  }

  async function take(body, onPiece) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      onPiece();
      const parts = (rest + value).split(/\r?\n\r?\n/);
      rest = parts.pop();
      for (const part of parts) handle(part);
    }
  }

  function handle(part) {
    const data = [];
    for (const line of part.split(/\r?\n/)) {
      if (line.startsWith("id:")) {
        const id = line.slice(3).trim();
        // The past is another one since a backup was restored, and what is on the screen is of the one before.
        if (Number(id) < Number(last)) tell("ended");
        last = id;
      }
      else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
    }
    if (data.length) onEvent(JSON.parse(data.join("\n")));
  }

  (async () => {
    while (!stopped.signal.aborted) {
      try {
        await read();
      } catch (error) {
        if (stopped.signal.aborted || error.status === 401) return;
        if (!(error instanceof ApiError)) tell("lost");
      }
      if (stopped.signal.aborted) return;
      await new Promise((resolve) => setTimeout(resolve, wait));
      wait = Math.min(wait * 2, 5000);
    }
  })();
  return () => stopped.abort();
}

/** What happens in all threads. A browser opens six connections to an address at most, so one tab reads for all tabs. */
export function followEvents(onEvent) {
  const others = new BroadcastChannel("annabelle-events");
  // Under a name without TLS there are none, and each tab reads for itself.
  const locks = navigator.locks ?? { request: async (name, options, work) => work() };
  let last = null;
  let asked = null;
  const take = (event) => {
    if (event.seq <= last) return;
    last = event.seq ?? last;
    onEvent(event);
  };
  const share = (event) => {
    others.postMessage(event);
    take(event);
  };
  others.onmessage = ({ data }) => (data.state ? tell(data.state) : take(data));
  const read = async (options) => {
    asked?.abort();
    asked = new AbortController();
    const { signal } = asked;
    let close = null;
    const off = ["lost", "back"].map((state) => on(state, () => close && others.postMessage({ state })));
    const held = locks.request("annabelle-events", options.steal ? options : { signal }, () => {
      close = stream("/events", last, share);
      return new Promise(() => {});
    });
    await held.catch(() => {});
    close?.();
    for (const one of off) one();
    if (!signal.aborted) read({});
  };
  read({});
  // The tab that reads may be asleep in the background.
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && read({ steal: true }));
}
