// Shows the explained text or image, with the words or regions of the sum marked by color and by pattern.

import { fill, h, s } from "./dom.js";
import { withMinusSign } from "./format.js";

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
