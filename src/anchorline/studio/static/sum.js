// Draws a sum: as a waterfall, in the explained text or image, and beside that of another case.

import { fill, h, isolate, s, valueText, withMinusSign } from "./base.js";

// Draws the sum as a waterfall: a table that contains every number, with bars that repeat them.

const cssPercent = (number) => `${number.toFixed(3)}%`;

// The levels of the sum: the start, and what each fact leads to.
function levels(sum) {
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

// Shows the explained text or image, with the words or regions of the sum marked by color and by pattern.

const sign = (fact) => (fact.value > 0 ? "plus" : "minus");

function marked({ text, fact: index }, facts) {
  if (index === null) return text;
  const isWhole = text.length <= 24 && !/\s/.test(text.trim());
  const kind = `${sign(facts[index])}${isWhole ? " whole" : ""}`;
  return h("mark", { class: kind }, h("bdi", null, text), h("sup", null, withMinusSign(facts[index].amount)));
}

// The image, or only what lies in the given areas.
function canvas({ width, height, rgb }, label, areas = null) {
  const bytes = atob(rgb);
  const node = h("canvas", { width, height, role: "img", "aria-label": label });
  const pen = node.getContext("2d");
  const image = pen.createImageData(width, height);
  for (let i = 0; i < width * height; i += 1) {
    for (let c = 0; c < 3; c += 1) image.data[4 * i + c] = bytes.charCodeAt(3 * i + c);
    image.data[4 * i + 3] = 255;
  }
  pen.putImageData(image, 0, 0);
  if (areas !== null) {
    pen.globalCompositeOperation = "destination-in";
    pen.fill(new Path2D(areas));
  }
  return node;
}

function overlay({ width, height, regions }, facts) {
  const size = Math.max(width, height);
  const step = size / 48;
  const line = s("rect", { class: "stripe", width: step / 3, height: step });
  const units = { width: step, height: step, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" };
  const areas = regions.map(({ fact, area, edges }) => {
    const hatched = facts[fact].value > 0 ? {} : { fill: "url(#hatch)" };
    const shapes = [s("path", { class: "area", d: area, ...hatched }), s("path", { class: "halo", d: edges }), s("path", { class: "edge", d: edges })];
    return s("g", { class: sign(facts[fact]) }, s("title", null, `${facts[fact].text}: ${withMinusSign(facts[fact].amount)}`), shapes);
  });
  const numbers = regions.map(({ name, middle: [x, y] }) => s("text", { x: x + 0.5, y: y + 0.5, dy: "0.35em", "font-size": size / 18 }, name));
  return s("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, s("defs", null, s("pattern", { id: "hatch", ...units }, line)), areas, numbers);
}

function images(content, facts) {
  const isSmall = Math.max(content.width, content.height) < 128;
  const figure = (...parts) => h("figure", null, h("div", { class: isSmall ? "frame pixels" : "frame" }, parts));
  const areas = content.regions.map(({ area }) => area).join("");
  return h(
    "div",
    { class: "pictures" },
    figure(canvas(content, "The image with the regions of the sum"), overlay(content, facts)),
    figure(canvas(content, "The regions of the sum alone", areas)),
  );
}

// ``node`` is empty unless a text or an image is explained.
export function drawContent(node, { content, sum }) {
  if (!content) return fill(node);
  const body = content.kind === "text"
    ? h("div", { class: "content-text", dir: "auto", tabindex: "0", role: "region", "aria-label": "The text" }, content.runs.map((run) => marked(run, sum.facts)))
    : images(content, sum.facts);
  return fill(node, body, h("p", { class: "note" }, content.caption));
}

// Shows two cases side by side: their sums on one scale, and their values.

const extent = ({ sum }) => [...levels(sum), sum.total.value];

export function compare(container, columns, first, second) {
  if (!second) {
    fill(container, h("p", { class: "note" }, "Type a case number, or click \u21c4 next to a case in the list."));
    return;
  }
  // The sums share a scale only if both explain the same output.
  const isShared = first.view.output === second.view.output;
  const range = isShared ? [...extent(first.view), ...extent(second.view)] : [];
  const side = ({ view, name }) => h("div", { class: "side" }, h("h3", null, `Case ${name}`), h("p", null, isolate(view.decision)), waterfall(view, range));
  const rows = columns.map((name, i) => {
    const [a, b] = [first.row.values[i], second.row.values[i]];
    const cells = [h("td", null, isolate(valueText(a))), h("td", { class: "sign" }, a === b ? "=" : "\u2260"), h("td", null, isolate(valueText(b)))];
    return h("tr", { class: a === b ? null : "differs" }, h("th", { scope: "row" }, isolate(name)), cells);
  });
  const column = (text) => h("th", { scope: "col" }, text);
  const head = h("thead", null, h("tr", null, column("column"), column(`case ${first.name}`), h("td"), column(`case ${second.name}`)));
  const table = h("table", { class: "values-table" }, h("caption", { class: "visually-hidden" }, "Values of both cases"), head, h("tbody", null, rows));
  fill(
    container,
    h("div", { class: "sides" }, side(first), side(second)),
    isShared ? null : h("p", { class: "note" }, "The two sums explain different outputs, so each has its own scale."),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Values of both cases" }, table),
  );
}
