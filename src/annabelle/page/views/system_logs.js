// The logs: the newest lines of one, filtered and followed.
import { get } from "../api.js";
import { bytes, describeError, h, makeField, replace } from "../dom.js";
import { poll } from "./system.js";

const MOST = 2000;

export async function show(root, place) {
  const { logs } = await get("/logs");
  if (!logs.length) return void replace(root, h("h2", "Logs"), h("p.empty", "There is no log yet."));
  const wanted = logs.find((one) => one.name === (place.rest[0] ?? "hub")) ?? logs[0];
  const name = makeField({ name: "name", label: "Log of", kind: "select", options: logs.map((one) => ({ value: one.name, label: `${one.name} (${bytes(one.size)})` })), value: wanted.name });
  const words = makeField({ name: "words", label: "Only lines with", kind: "search" });
  const follow = makeField({ name: "follow", label: "Follow", kind: "checkbox", value: true });
  const lines = h("pre.code.log-lines", { tabIndex: 0, "aria-label": "Lines of the log", role: "log", "aria-live": "off" });
  const empty = h("p.empty", { hidden: true }, "There is no such line.");
  let position = null;
  let asked = 0;

  const add = (found) => {
    const atEnd = lines.scrollTop + lines.clientHeight >= lines.scrollHeight - 30;
    for (const line of found) lines.append(h("span", { className: /\b(ERROR|CRITICAL)\b/.test(line) ? "problem" : "" }, `${line}\n`));
    while (lines.childElementCount > MOST) lines.firstChild.remove();
    if (atEnd) lines.scrollTop = lines.scrollHeight;
    empty.hidden = lines.childElementCount > 0;
  };
  const read = async (from) => {
    const turn = from ? asked : ++asked;
    const found = await get(`/logs/${encodeURIComponent(name.read())}`, { words: words.read(), lines: 500, position: from });
    if (turn !== asked) return; // another log or filter was chosen meanwhile
    position = found.position;
    if (!from) replace(lines);
    add(found.lines);
  };
  const again = () => {
    position = null; // what follows the lines of before belongs to them
    return read(null).catch((error) => replace(lines, describeError(error)));
  };
  name.input.addEventListener("change", again);
  words.input.addEventListener("input", again);
  replace(root, h("h2", "Logs"), h("div.row.settings-search", words.element, name.element, follow.element), empty, lines);
  await read(null);
  lines.scrollTop = lines.scrollHeight;
  return poll(2, async () => follow.read() && position && read(position));
}
