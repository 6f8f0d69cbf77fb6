// Plots as SVG. Each stands beside a table with the same figures, which is what a screen reader gets.
import { h, svg } from "./dom.js";

const HEIGHT = 200;
const ROW = 44;
const AXIS = 66;

function figure(width, height, label, ...parts) {
  const attributes = { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${label} The table has the same figures.` };
  return h("figure.plot", svg("svg", attributes, parts));
}

function text(x, y, words, anchor = "start") {
  return svg("text", { x, y, "text-anchor": anchor }, words);
}

function box(x, y, width, height, title, kind) {
  return svg("rect", { x, y, width: Math.max(width, 0), height: Math.max(height, 0), rx: 2, class: kind }, svg("title", {}, title));
}

/** Upright bars, one for each `{label, value, title}`, with the first, the last and the highest value named. */
export function columnPlot(columns, width, label, format) {
  const most = Math.max(...columns.map((one) => one.value)) || 1;
  const step = (width - AXIS) / columns.length;
  const floor = HEIGHT - 22;
  const top = (value) => floor - (value / most) * (HEIGHT - 40);
  const bars = columns.map((one, place) => {
    const high = one.value ? Math.min(top(one.value), floor - 2) : floor;
    return box(AXIS + (place + 0.1) * step, high, step * 0.8, floor - high, one.title, "");
  });
  const line = (value) => svg("line", { x1: AXIS, x2: width, y1: top(value), y2: top(value) });
  const marks = [most, most / 2, 0].map((value) => [line(value), text(AXIS - 8, top(value) + 4, format(value), "end")]);
  const ends = [text(AXIS, HEIGHT - 4, columns[0].label), text(width, HEIGHT - 4, columns.at(-1).label, "end")];
  return figure(width, HEIGHT, label, marks, bars, ends);
}

/** Lying bars, one below the other, for `{label, told, parts: [{value, title, kind}]}`; the parts stand on each other. */
export function rowPlot(rows, width, label) {
  const most = Math.max(...rows.map((row) => Math.max(...row.parts.map((part) => part.value)))) || 1;
  const drawn = rows.map((row, place) => {
    const top = place * ROW;
    const thick = 18 / row.parts.length;
    const bars = row.parts.map((part, number) => box(0, top + 20 + number * thick, (part.value / most) * width, thick - 1, part.title, part.kind));
    return [text(0, top + 14, shorten(row.label, width)), text(width, top + 14, row.told, "end"), bars];
  });
  return figure(width, rows.length * ROW, label, drawn);
}

function shorten(words, width) {
  const most = Math.floor(width / 8 - 14);
  return words.length > most ? `${words.slice(0, most - 1)}…` : words;
}

/** How wide a plot may be here, so that its words keep their size. */
export function plotWidth(root) {
  return Math.min(Math.max(root.clientWidth - 26, 280), 900);
}
