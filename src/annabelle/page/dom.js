// Builds elements. Text is only ever set as text, so nothing that is shown can become markup or script.

/** `h("p.hint", { title: "more" }, "text", …)`: a tag with its classes, attributes, which may be left out, and children. */
export function h(name, ...given) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  if (given[0]?.constructor === Object) apply(element, given.shift());
  return append(element, given);
}

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  append(element, children);
  return element;
}

function apply(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name in element && !name.startsWith("aria") && name !== "list" && name !== "role") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

export function replace(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

/** A button that is disabled while its work runs, and says what went wrong. */
export function button(label, work, attributes = {}) {
  const element = h("button", { type: "button", ...attributes }, label);
  element.addEventListener("click", async () => {
    if (element.disabled || (element.type === "submit" && element.form?.reportValidity() === false)) return;
    const focused = document.activeElement === element;
    element.disabled = true;
    try {
      await work(element);
    } catch (error) {
      toast(describeError(error), "error");
    } finally {
      element.disabled = false;
      if (focused) refocus(element);
    }
  });
  return element;
}

/** Gives the focus back to a control that lost it, or to the one that was drawn in its place. */
export function refocus(element) {
  if (document.activeElement && document.activeElement !== document.body) return;
  const name = (one) => one.getAttribute("aria-label") ?? one.textContent;
  const twin = element.isConnected ? element : [...document.querySelectorAll(`main ${element.tagName}`)].find((one) => name(one) === name(element));
  twin?.focus();
}

export function describeError(error) {
  return [error.message || String(error), error.hint].filter(Boolean).join(" ");
}

/** One sentence at the edge of the window, which a screen reader reads out. */
export function toast(text, kind = "info") {
  const shown = h("div", { className: `toast ${kind}` }, text);
  document.getElementById("toasts").append(shown);
  setTimeout(() => shown.remove(), kind === "error" ? 12000 : 5000);
}

/** Asks in a dialog. Resolves to the values of its form, or null if it was closed. */
export function ask(title, fields = [], { yes = "Yes", no = "Cancel", danger = false, text = "", filter = "" } = {}) {
  return new Promise((resolve) => {
    const inputs = fields.map((field) => makeField(field));
    const narrow = (event) => {
      for (const one of inputs) one.element.hidden = !one.element.textContent.toLowerCase().includes(event.target.value.toLowerCase());
    };
    const form = h(
      "form",
      { method: "dialog" },
      h("h2", { id: "dialog-title" }, title),
      text && h("div", { id: "dialog-text" }, text),
      filter && h("input", { type: "search", className: "wide", placeholder: filter, "aria-label": filter, oninput: narrow, onkeydown: onEnter(() => {}) }),
      inputs.map((one) => one.element),
      h(
        "div.row.end",
        h("button", { type: "button", onclick: () => dialog.close() }, no),
        h("button", { type: "submit", className: danger ? "danger" : "primary", value: "yes" }, yes),
      ),
    );
    const dialog = h("dialog", { "aria-labelledby": "dialog-title", "aria-describedby": text ? "dialog-text" : null }, form);
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes" ? Object.fromEntries(inputs.map((one) => [one.name, one.read()])) : null);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Asks, and does `work` with the answer. If that fails, it asks again with what was typed and what was wrong. */
export async function askUntilDone(title, fields, options, work) {
  for (let given = {}, problem = options.text; ; ) {
    given = await ask(title, fields.map((one) => ({ ...one, value: given[one.name] ?? one.value })), { ...options, text: problem });
    if (!given) return null;
    try {
      return await work(given);
    } catch (error) {
      problem = h("p.problem", { role: "alert" }, describeError(error));
    }
  }
}

/** What differs from what the fields held before. All else stays as it is by now: somebody may have changed it in another tab. */
export function onlyChanged(fields, given) {
  return Object.fromEntries(fields.filter((one) => given[one.name] !== one.value).map((one) => [one.name, given[one.name]]));
}

const COMPOSING = 229; // one browser ends a composition before it tells of the Enter that did

/** A listener for keys in a text: Enter does `work`, Shift and Enter begins a new line. */
export function onEnter(work) {
  return (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === COMPOSING) return;
    event.preventDefault();
    work();
  };
}

/** A text to send, and what sets its words. They are kept in this tab until then. */
export function draft(channel, chatId, attributes) {
  const name = `draft ${channel} ${chatId}`;
  const keep = () => sessionStorage.setItem(name, area.value);
  const area = h("textarea", { rows: 2, value: sessionStorage.getItem(name) ?? "", oninput: keep, ...attributes });
  const write = (text) => {
    area.value = text;
    keep();
  };
  return { area, write };
}

let fieldNumber = 0;

/** A labelled input: text, textarea, select (`options`), checkbox, number, time, password. `before` is what it held first. */
export function makeField({ name, label, kind = "text", value = "", options = [], hint = "", required = false, rows = 5 }) {
  const id = `field-${++fieldNumber}`;
  const described = hint ? `${id}-hint` : null;
  let input;
  if (kind === "textarea") input = h("textarea", { id, value, rows, required });
  else if (kind === "select") {
    input = h("select", { id }, options.map((one) => h("option", { value: one.value ?? one, selected: (one.value ?? one) === value }, one.label ?? one)));
  } else if (kind === "checkbox") input = h("input", { id, type: "checkbox", checked: Boolean(value) });
  else input = h("input", { id, type: kind, value, required, autocomplete: "off" });
  if (described) input.setAttribute("aria-describedby", described);
  const caption = h("label", { htmlFor: id }, label);
  const parts = kind === "checkbox" ? [h("div.row", input, caption)] : [caption, input];
  const element = h("div.field", parts, hint && h("div", { id: described, className: "hint" }, hint));
  const read = () => (kind === "checkbox" ? input.checked : kind === "number" ? Number(input.value) : input.value);
  return { name, element, input, read, before: read() };
}

/** A field for any value: text as it is, a list of texts one per line, the rest as JSON. `value()` is what it holds then. */
export function valueField(label, value, { rows = 3, note = "" } = {}) {
  const isList = Array.isArray(value) && value.every((one) => typeof one === "string" && !/[\r\n]/.test(one));
  const isText = typeof value === "string";
  const text = isList ? value.join("\n") : isText ? value : JSON.stringify(value);
  const hint = [isList && "One per line.", value && typeof value === "object" && !isList && "As JSON.", note].filter(Boolean).join(" ");
  const tall = isList || rows > 3 || text.length > 80 || /[\r\n]/.test(text);
  const field = makeField({ name: label, label, value: text, hint, kind: tall ? "textarea" : "text", rows });
  const read = () => {
    if (field.read() === field.before) return value;
    if (isText) return field.read();
    if (isList) return field.read().split("\n").map((one) => one.trim()).filter(Boolean);
    try {
      return JSON.parse(field.read());
    } catch (error) {
      if (value && typeof value === "object") throw new Error(`${label} is not valid JSON: ${error.message}`);
      return field.read();
    }
  };
  return { ...field, value: read };
}

/** A table. `columns` are `{label, cell(row)}`. */
export function table(columns, rows, { empty = "There is nothing here yet.", caption = null } = {}) {
  if (!rows.length) return h("p.empty", empty);
  return h(
    "div.scroll",
    { tabIndex: 0, role: "region", "aria-label": caption || "Table" },
    h(
      "table.stacked",
      caption && h("caption.hidden", caption),
      h("thead", h("tr", columns.map((one) => h("th", { scope: "col" }, one.label)))),
      h("tbody", rows.map((row) => h("tr", columns.map((one) => h("td", { data: { label: one.label } }, one.cell(row)))))),
    ),
  );
}

export function badge(text, kind = "") {
  return h("span", { className: `badge ${kind}` }, text);
}

/** A section that can be opened. */
export function details(summary, content, attributes = {}) {
  return h("details", attributes, h("summary", summary), content);
}

export function section(title, ...children) {
  return h("section", { "aria-label": title }, h("h2", title), children);
}

/** Links of which one is where the person is now: `[address, label, whether it is this one]`. */
export function tabs(label, links) {
  const link = ([href, words, here]) => h("a", { href, "aria-current": here && "page" }, words);
  return h("nav.tabs", { "aria-label": label }, links.map(link));
}

/** Labels with what belongs to each. */
export function pairs(rows) {
  return h("dl.pairs", rows.map(([label, value]) => [h("dt", label), h("dd", value)]));
}

/** The arguments or the result of a call, to read: text as it is, the rest as JSON. */
export function valueList(values) {
  const shown = (value) => (typeof value === "string" ? h("div.plain", value) : typeof value === "object" && value ? codeBlock(value) : String(value));
  return pairs(Object.entries(values).map(([name, value]) => [name.replaceAll("_", " "), shown(value)]));
}

const UNSEEN = /[\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u007f-\u009f\u115f\u1160\u2800\u3164\uffa0]/gu;

/** A value with all characters spelled out that nobody sees: they could make a call look like another one. */
export function spellOut(value) {
  return JSON.parse(JSON.stringify(value).replace(UNSEEN, (one) => `\\\\u${one.codePointAt(0).toString(16).padStart(4, "0")}`));
}

/** The first sentence about a tool, without the group it stands in. */
export function toolSentence(description) {
  return description.replace(/^\[.*?\] /, "").split(/(?<=\.)\s/)[0];
}

export function codeBlock(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return h("pre.code", { tabIndex: 0 }, text);
}

// Times are shown in the zone of the home, not of the browser, whose clock may be wrong.
let zone;

export function setTimeZone(name) {
  try {
    new Intl.DateTimeFormat(undefined, { timeZone: name });
    zone = name;
  } catch {
    zone = undefined; // a name that only the hub's machine knows
  }
}

const formats = new Map();

function format(options, value) {
  const key = JSON.stringify([zone, options]);
  if (!formats.has(key)) formats.set(key, new Intl.DateTimeFormat(undefined, { timeZone: zone, ...options }));
  return formats.get(key).format(new Date(value));
}

export function time(value, style = "full") {
  if (!value) return "";
  const options = { full: { dateStyle: "medium", timeStyle: "short" }, day: { dateStyle: "full" }, clock: { timeStyle: "short" } }[style];
  return h("time", { dateTime: value }, format(options, value));
}

/** The day of a moment as 2026-11-18, in the zone of the home. */
export function dayOf(value) {
  const parts = new Intl.DateTimeFormat("en-CA", { timeZone: zone, dateStyle: "short" });
  return parts.format(new Date(value));
}

export function money(value) {
  if (value === null || value === undefined) return "unknown";
  return `$${value < 0.01 && value > 0 ? value.toFixed(6) : value.toFixed(2)}`;
}

export function capitalize(word) {
  return word[0].toUpperCase() + word.slice(1);
}

export function count(value) {
  return new Intl.NumberFormat().format(value ?? 0);
}

export function bytes(value) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let index = 0;
  for (; value >= 1024 && index < units.length - 1; index++) value /= 1024;
  return `${value.toFixed(index ? 1 : 0)} ${units[index]}`;
}
