// Keeps what is on the screen up to date, without closing or moving what somebody is using.
import { refocus, replace } from "./dom.js";

const SOON = 200;
const PAUSE = 2000;

/** Calls `work` soon after something happened, of these types or any. Many events are few calls, and none while nobody
 * looks: what the page asks by itself counts against the requests that its person has in a minute. Returns what ends it. */
export function onNews(work, types = null) {
  const begun = new Set();
  let timer = null;
  let again = false;
  let ran = 0;
  let ended = false;
  const run = async () => {
    again = false;
    await work().catch(() => {});
    ran = Date.now();
    timer = null;
    if (again && !ended) soon();
  };
  const soon = () => {
    again = true;
    if (!document.hidden) timer ??= setTimeout(run, Math.max(SOON, ran + PAUSE - Date.now()));
  };
  const onSeen = () => again && soon();
  const listener = ({ detail }) => {
    // A piece of text is only news if it is the first sign of a turn.
    const first = !begun.has(detail.message_id);
    begun.add(detail.message_id);
    if (detail.type === "done") begun.delete(detail.message_id);
    if (types ? types.includes(detail.type) : first || !["text", "think", "usage"].includes(detail.type)) soon();
  };
  window.addEventListener("annabelle", listener);
  document.addEventListener("visibilitychange", onSeen);
  return () => {
    document.removeEventListener("visibilitychange", onSeen);
    window.removeEventListener("annabelle", listener);
    clearTimeout(timer);
    ended = true;
  };
}

/** Draws one element for each row into `place`. The element of a row that is as before stays, with what is open in it. */
export function drawRows(place, rows, idOf, draw) {
  const box = (one) => (one?.matches("details") ? one : one?.querySelector("details"));
  const before = new Map([...place.children].map((one) => [one.dataset.row, one]));
  const elements = rows.map((row) => {
    const text = JSON.stringify(row);
    const known = before.get(idOf(row));
    if (known?.shown === text) return known;
    const made = draw(row);
    made.dataset.row = idOf(row);
    made.shown = text;
    if (box(known)?.open) box(made).open = true;
    return made;
  });
  if (elements.length === place.children.length && elements.every((one, index) => one === place.children[index])) return;
  redraw(place, elements);
}

/** Draws into `place` again if `data` is not what it shows. */
export function drawChanged(place, data, draw) {
  const text = JSON.stringify(data);
  if (place.shown === text) return;
  place.shown = text;
  redraw(place, draw());
}

/** The newest rows before those that are shown already. If none of them is known, there may be others in between. */
export function joinNewest(newest, shown, idOf) {
  const ids = new Set(newest.map(idOf));
  const older = shown.filter((one) => !ids.has(idOf(one)));
  return older.length < shown.length ? [...newest, ...older] : newest;
}

/** As `replace`, but whoever was at a control in it is at that control afterwards. */
export function redraw(place, ...children) {
  const focused = place.contains(document.activeElement) ? document.activeElement : null;
  replace(place, children);
  if (focused) refocus(focused);
}
