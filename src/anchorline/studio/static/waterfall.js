// Draws the sum as a waterfall: a table that contains every number, with bars that repeat them.

import { h, isolate } from "./dom.js";
import { withMinusSign } from "./format.js";

const cssPercent = (number) => `${number.toFixed(3)}%`;

// The levels of the sum: the start, and what each fact leads to.
export function levels(sum) {
  let level = sum.start.value;
  return [level, ...sum.facts.map((fact) => (level += fact.value))];
}

function row(kind, text, number, parts) {
  return h(
    "tr",
    { class: kind },
    h("td", { class: "number" }, withMinusSign(number)),
    h("th", { scope: "row" }, text),
    h("td", { class: "track", "aria-hidden": "true" }, parts),
  );
}

// ``range`` are further values that the scale covers, so that several sums can share one.
export function waterfall(view, range = []) {
  const { sum, fact: noun } = view;
  const all = [...levels(sum), sum.total.value, ...range];
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const room = (high - low || Math.abs(high) || 1) * 0.04;
  const place = (value) => (100 * (value - low + room)) / (high - low + 2 * room);
  const mark = (name, value, end = value) =>
    h("i", { class: name, style: { left: cssPercent(place(Math.min(value, end))), ...(end === value ? {} : { width: cssPercent(Math.abs(place(end) - place(value))) }) } });
  const steps = levels(sum);
  const rows = [row("start", isolate(sum.start.text), sum.start.amount, [mark("dot", steps[0]), mark("down", steps[0])])];
  sum.facts.forEach((fact, i) => {
    const [before, after] = [steps[i], steps[i + 1]];
    const parts = [mark("up", before), mark(`strip ${fact.value >= 0 ? "plus" : "minus"}`, before, after), mark("down", after)];
    rows.push(row("fact", isolate(fact.text), fact.amount, parts));
  });
  const name = [view.output, view.unit && `[${view.unit}]`].filter(Boolean).join(" ");
  rows.push(row("total", isolate(name), sum.total.amount, [mark("up", sum.total.value), mark("dot", sum.total.value)]));
  const head = [h("th", { scope: "col", class: "number" }, "adds"), h("th", { scope: "col" }, noun), h("td", { "aria-hidden": "true" })];
  return h("table", { class: "sum" }, h("caption", { class: "visually-hidden" }, "The sum"), h("thead", null, h("tr", null, head)), h("tbody", null, rows));
}
