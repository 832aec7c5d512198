// Draws the errors with their intervals by number of terms; a click selects a number of terms.

import { h, s } from "./dom.js";
import { shortNumber } from "./format.js";

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [480, 230, 58, 12, 12, 42];
const SERIES = ["fidelity_error", "relevance_error"];

function ticks(highest) {
  const power = 10 ** Math.floor(Math.log10(highest));
  const step = [0.2, 0.5, 1, 2].map((unit) => unit * power).find((size) => highest / size <= 5);
  return Array.from({ length: Math.floor(highest / step) + 1 }, (_, i) => i * step);
}

function mark(name, x, y) {
  return name === SERIES[0]
    ? s("circle", { cx: x, cy: y, r: 4 })
    : s("rect", { x: x - 3.7, y: y - 3.7, width: 7.4, height: 7.4 });
}

function series(name, points, x, y) {
  const measured = points.filter((point) => point[name]);
  if (!measured.length) return null;
  const upper = measured.map((point) => `${x(point.k)} ${y(point[name].high)}`);
  const lower = measured.map((point) => `${x(point.k)} ${y(point[name].low)}`).reverse();
  const line = measured.map((point) => `${x(point.k)} ${y(point[name].value)}`);
  return s(
    "g",
    { class: name },
    s("path", { class: "band", d: `M${[...upper, ...lower].join("L")}Z` }),
    s("path", { class: "line", d: `M${line.join("L")}` }),
    measured.map((point) => mark(name, x(point.k), y(point[name].value))),
  );
}

function legendEntry(name, text) {
  const line = s("path", { class: "line", d: "M0 6H32" });
  const drawing = { class: `key ${name}`, viewBox: "0 0 32 12", "aria-hidden": "true" };
  return h("span", null, s("svg", drawing, line, mark(name, 16, 6)), ` ${text}`);
}

export function curve(points, k, onSelect) {
  const all = points.flatMap((point) => SERIES.map((name) => point[name]?.high ?? 0));
  const highest = (Math.max(...all) || 1) * 1.05;
  const last = points.length - 1;
  const x = (n) => LEFT + (WIDTH - LEFT - RIGHT) * (last ? 0.04 + (0.92 * (n - points[0].k)) / last : 0.5);
  const y = (error) => TOP + (1 - error / highest) * (HEIGHT - TOP - BOTTOM);
  const descriptions = points.map((point) => {
    const [fidelity, relevance] = SERIES.map((name) => shortNumber(point[name]?.value));
    return `${point.k} terms: fidelity error ${fidelity}, relevance error ${relevance}`;
  });
  const grid = ticks(highest).map((value) => [
    s("path", { class: "grid", d: `M${LEFT} ${y(value)}H${WIDTH - RIGHT}` }),
    s("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, shortNumber(value, 2)),
  ]);
  const half = last ? (0.46 * (WIDTH - LEFT - RIGHT)) / last : 40;
  const columns = points.map((point, i) => {
    const isSelected = point.k === k;
    const field = { x: x(point.k) - half, y: TOP, width: 2 * half, height: HEIGHT - TOP - BOTTOM + 24, rx: 4 };
    const number = { x: x(point.k), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" };
    return [
      s("rect", {
        ...field,
        class: isSelected ? "selected" : "choice",
        role: "button",
        tabindex: "0",
        "aria-label": descriptions[i],
        "aria-pressed": String(isSelected),
        onclick: () => onSelect(point.k),
        onkeydown: (event) => {
          if (event.key === "Enter" || event.key === " ") {
            event.preventDefault();
            onSelect(point.k);
          }
        },
      }),
      s("text", { ...number, class: isSelected ? "selected" : null }, point.k),
    ];
  });
  const lines = SERIES.map((name) => series(name, points, x, y));
  const axis = s("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, "terms");
  const description = `Errors by number of terms. ${descriptions.join("; ")}.`;
  const picture = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": description };
  return h(
    "figure",
    { class: "curve" },
    s("svg", picture, columns, grid, lines, axis),
    h(
      "figcaption",
      { class: "note" },
      legendEntry(SERIES[0], "how far the sum is from the model (fidelity error)"),
      legendEntry(SERIES[1], "how far the answer moves while the facts hold (relevance error)"),
      "Both are mean squares of the output scaled to [\u22121, +1].",
    ),
  );
}
