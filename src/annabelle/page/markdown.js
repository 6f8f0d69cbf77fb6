// Renders Markdown as elements. It never parses HTML: markup in a text is shown as the characters it is.
import { h } from "./dom.js";

// Every span has a longest length, or a text of marks that nothing closes would be read again from each of them.
const INLINE = /(`+)([\s\S]{1,2000}?)\1(?!`)|\*\*([^\s*](?:[\s\S]{0,1000}?[^\s*])?)\*\*|__([^\s_](?:[\s\S]{0,1000}?[^\s_])?)__|\*([^\s*](?:[\s\S]{0,1000}?[^\s*])?)\*|~~(\S(?:[\s\S]{0,1000}?\S)?)~~|!?\[([^\]\n]{0,500})\]\(\s*<?([^)\s>]{1,2000})>?(?:\s+"[^"\n]*")?\s*\)|(https?:\/\/[^\s<>"'`)\]]+[^\s<>"'`)\].,;:!?])|(  \n|\\\n)/;
const MOST_NESTED = 12;
const LONG = 200_000;

/** Only the web and mail can be linked to; anything else stays text. */
function safeLink(address) {
  try {
    const url = new URL(address);
    return ["https:", "http:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

function inline(text, depth = 0) {
  const parts = [];
  let rest = text;
  while (rest && depth < MOST_NESTED) {
    const found = INLINE.exec(rest);
    if (!found) break;
    if (found.index) parts.push(rest.slice(0, found.index));
    parts.push(inlineElement(found, depth));
    rest = rest.slice(found.index + found[0].length);
  }
  if (rest) parts.push(rest);
  return parts;
}

function inlineElement(found, depth) {
  const [whole, , code, strong, strong2, emphasis, struck, label, target, bare] = found;
  if (code !== undefined) return h("code", code.replace(/^ (.*) $/s, "$1"));
  if (strong ?? strong2) return h("strong", inline(strong ?? strong2, depth + 1));
  if (emphasis !== undefined) return h("em", inline(emphasis, depth + 1));
  if (struck !== undefined) return h("s", inline(struck, depth + 1));
  if (target !== undefined) {
    // Images of other machines are not loaded: that would tell them that somebody reads this.
    const href = safeLink(target);
    return href ? link(href, inline(label || target, depth + 1)) : whole;
  }
  if (bare !== undefined) return link(bare, bare);
  return h("br");
}

function link(href, content) {
  return h("a", { href, target: "_blank", rel: "noopener noreferrer nofollow", referrerPolicy: "no-referrer" }, content);
}

/** Elements for a text. A very long one is shown plain, so that the page stays quick. */
export function markdown(text) {
  if (text.length > LONG) return h("div.md", h("pre.plain", text));
  return h("div.md", blocks(text.split(/\r\n?|[\n\u2028\u2029]/), 0));
}

const STARTS = [/^\s{0,3}(`{3,}|~{3,})/, /^\s{0,3}#{1,6}\s/, /^\s{0,3}>/, /^\s*([-*+]|\d{1,9}[.)])\s+/, /^\s{0,3}([-*_])(\s*\1){2,}\s*$/];

function blocks(lines, depth) {
  const found = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    let match;
    if (!line.trim()) at++;
    else if ((match = /^(\s{0,3})(`{3,}|~{3,})\s*([^\s`]*)/.exec(line))) at = fence(lines, at, match, found);
    else if ((match = /^\s{0,3}(#{1,6})\s+(.*)$/.exec(line.trimEnd()))) {
      // The page has headings of its own above these.
      found.push(h(`h${Math.min(match[1].length + 2, 6)}`, {}, inline(match[2].replace(/(^|\s)#+$/, ""))));
      at++;
    } else if (STARTS[4].test(line)) {
      found.push(h("hr"));
      at++;
    } else if (/^\s{0,3}>/.test(line) && depth < MOST_NESTED) {
      const from = at;
      while (at < lines.length && /^\s{0,3}>/.test(lines[at])) at++;
      found.push(h("blockquote", blocks(lines.slice(from, at).map((one) => one.replace(/^\s{0,3}> ?/, "")), depth + 1)));
    } else if (STARTS[3].test(line) && depth < MOST_NESTED) at = list(lines, at, found, depth);
    else if (isTable(lines, at)) at = tableBlock(lines, at, found);
    else at = paragraph(lines, at, found);
  }
  return found;
}

function fence(lines, at, [, , marks, language], found) {
  const body = [];
  for (at++; at < lines.length && !(lines[at].trim().startsWith(marks) && !lines[at].trim().replaceAll(marks[0], "")); at++) body.push(lines[at]);
  found.push(h("pre.code", { tabIndex: 0, data: { language } }, h("code", body.join("\n"))));
  return at + 1;
}

function list(lines, at, found, depth) {
  const first = /^(\s*)([-*+]|\d{1,9}[.)])\s+/.exec(lines[at]);
  const ordered = /\d/.test(first[2]);
  const items = [];
  while (at < lines.length) {
    const match = /^(\s*)([-*+]|\d{1,9}[.)])(\s+)(.*)$/.exec(lines[at]);
    if (!match || match[1].length > first[1].length + 1 || /\d/.test(match[2]) !== ordered) break;
    const indent = match[1].length + match[2].length + Math.min(match[3].length, 4);
    const body = [match[4]];
    for (at++; at < lines.length; at++) {
      const blank = !lines[at].trim();
      const inside = /^\s*/.exec(lines[at])[0].length >= Math.min(indent, match[1].length + 2);
      if (blank ? !(lines[at + 1] && /^\s{2,}\S/.test(lines[at + 1])) : !inside && STARTS.some((one) => one.test(lines[at]))) break;
      if (!blank && !inside && !body.at(-1).trim()) break;
      body.push(lines[at].slice(Math.min(indent, /^\s*/.exec(lines[at])[0].length)));
    }
    items.push(h("li", listItem(body, depth)));
    while (at < lines.length && !lines[at].trim() && STARTS[3].test(lines[at + 1] ?? "")) at++;
  }
  found.push(h(ordered ? "ol" : "ul", ordered ? { start: Number.parseInt(first[2], 10) } : {}, items));
  return at;
}

function listItem(body, depth) {
  const box = /^\[([ xX])\]\s+(.*)$/.exec(body[0]);
  const content = blocks(box ? [box[2], ...body.slice(1)] : body, depth + 1);
  const only = content.length && content[0].tagName === "P" ? [...content[0].childNodes, ...content.slice(1)] : content;
  return box ? [box[1] === " " ? "☐ " : "☑ ", only] : only;
}

function cells(line) {
  return line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((one) => one.trim().replaceAll("\\|", "|"));
}

function isTable(lines, at) {
  return lines[at].includes("|") && /^\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?$/.test((lines[at + 1] ?? "").trim());
}

function tableBlock(lines, at, found) {
  const head = cells(lines[at]);
  const rows = [];
  for (at += 2; at < lines.length && lines[at].includes("|") && lines[at].trim(); at++) rows.push(cells(lines[at]));
  found.push(
    h(
      "div.scroll",
      { tabIndex: 0, role: "region", "aria-label": "Table" },
      h("table", h("thead", h("tr", head.map((one) => h("th", { scope: "col" }, inline(one))))), h("tbody", rows.map((row) => h("tr", row.slice(0, head.length).map((one) => h("td", inline(one)))))))
    ),
  );
  return at;
}

function paragraph(lines, at, found) {
  const from = at;
  for (at++; at < lines.length && lines[at].trim() && !STARTS.some((one) => one.test(lines[at])) && !isTable(lines, at); at++);
  found.push(h("p", inline(lines.slice(from, at).join("\n"))));
  return at;
}
