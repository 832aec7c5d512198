// Draws the sum as a waterfall: a table that contains every number, with bars that repeat them.

import { h, isolate } from "./dom.js";
import { shortNumber, withMinusSign, withSign } from "./format.js";

class Scale {
  constructor(levels) {
    const low = Math.min(...levels);
    const high = Math.max(...levels);
    const room = (high - low || Math.abs(high) || 1) * 0.04;
    this.low = low - room;
    this.width = high - low + 2 * room || 1;
  }

  // Four to eight round values inside the scale, each with its text; all have the same decimals.
  ticks() {
    const power = 10 ** Math.floor(Math.log10(this.width));
    const step = [0.1, 0.2, 0.5, 1].map((unit) => unit * power).find((size) => this.width / size <= 6);
    const first = Math.ceil(this.low / step);
    const n = Math.floor((this.low + this.width) / step) - first + 1;
    const decimals = Math.max(0, -Math.floor(Math.log10(step * 1.0001)));
    const text = (value) => (Math.max(Math.abs(this.low), this.width) >= 1e6 || decimals > 7 ? shortNumber(value) : withMinusSign(value.toFixed(decimals)));
    return Array.from({ length: n }, (_, i) => Number(((first + i) * step).toPrecision(12))).map((value) => [value, text(value)]);
  }

  percent(value) {
    return (100 * (value - this.low)) / this.width;
  }
}

const cssPercent = (number) => `${number.toFixed(3)}%`;
const position = (left, width) => (width === undefined ? { left: cssPercent(left) } : { left: cssPercent(left), width: cssPercent(width) });

function row(kind, text, number, parts) {
  return h(
    "tr",
    { class: kind },
    text ? h("th", { scope: "row" }, text) : h("td"), // the axis has no name
    h("td", { class: "number" }, number),
    h("td", { class: "track", "aria-hidden": "true" }, parts),
  );
}

export function levels(sum) {
  let level = sum.intercept ? sum.intercept.value : 0;
  const steps = sum.terms.map((term) => {
    const before = level;
    level += term.value;
    return { before, after: level };
  });
  return { base: sum.intercept ? sum.intercept.value : 0, steps };
}

export function waterfall(sum, literals, total, caption, range = [], means = {}) {
  const { base, steps } = levels(sum);
  const known = Object.entries(means).filter(([, value]) => value !== null);
  const scale = new Scale([base, sum.total.value, ...steps.map((step) => step.after), ...known.map(([, value]) => value), ...range]);
  const mark = (name, value, width) => h("i", { class: name, style: position(scale.percent(value), width) });
  const compared = () => known.map(([name, value]) => mark(`mean ${name}`, value));
  const rows = [];
  if (sum.intercept) {
    const parts = [...compared(), mark("dot", base), mark("down", base)];
    rows.push(row("level", "starting level", withMinusSign(sum.intercept.number), parts));
  }
  sum.terms.forEach((term, i) => {
    const { before, after } = steps[i];
    const left = Math.min(before, after);
    const width = scale.percent(Math.max(before, after)) - scale.percent(left);
    const parts = [mark(`strip ${term.value >= 0 ? "plus" : "minus"}`, left, width), mark("down", after)];
    if (i > 0 || sum.intercept) parts.unshift(mark("up", before));
    parts.unshift(...compared());
    rows.push(row("term", isolate(literals[term.index].text), withSign(term.number), parts));
  });
  const end = sum.total.value;
  rows.push(row("total", total, withMinusSign(sum.total.number), [...compared(), mark("up", end), mark("dot", end)]));
  rows.push(row("axis", "", "", scale.ticks().map(([value, text]) => h("i", { class: "tick", style: position(scale.percent(value)) }, h("span", null, text)))));
  const longest = Math.max(...[...sum.terms, sum.intercept ?? sum.total, sum.total].map(({ number }) => number.length));
  const width = longest > 6 ? { width: `${(0.64 * longest + 2.2).toFixed(1)}rem` } : {}; // so that no number meets a bar
  const names = [h("th", { scope: "col" }, "fact"), h("th", { scope: "col", class: "number", style: width }, "adds")];
  return h(
    "table",
    { class: "sum" },
    h("caption", { class: "visually-hidden" }, caption),
    h("thead", null, h("tr", null, names, h("td", { "aria-hidden": "true" }))),
    h("tbody", null, rows),
  );
}
