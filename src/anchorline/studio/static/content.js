// Shows the explained text or image, with the words or regions of the sum marked by color and by pattern.

import { fill, h, s } from "./dom.js";
import { withSign } from "./format.js";

const LONG = 20_000; // characters; in a longer text, only what is near a mark is shown
const NEAR = 300;

const sign = (term) => (term.value > 0 ? "plus" : "minus");

function shortened(text, isFirst, isLast) {
  if (text.length <= 2 * NEAR) return text;
  return `${isFirst ? "" : text.slice(0, NEAR)} \u2026 ${isLast ? "" : text.slice(-NEAR)}`;
}

function marked(text, term) {
  const isWhole = text.length <= 24 && !/\s/.test(text.trim());
  const number = withSign(term.number);
  return h("mark", { class: `${sign(term)}${isWhole ? " whole" : ""}` }, h("bdi", null, text), h("sup", null, number));
}

function textNodes(content, terms) {
  const isLong = content.pieces.reduce((sum, piece) => sum + piece.length, 0) > LONG;
  const runs = [{ text: "", term: null }];
  content.pieces.forEach((text, i) => {
    const term = i % 2 ? terms.get(content.literals[(i - 1) / 2]) : undefined;
    if (term) runs.push({ text, term }, { text: "", term: null });
    else runs.at(-1).text += text;
  });
  return runs.map(({ text, term }, i) => (term ? marked(text, term) : isLong ? shortened(text, i === 0, i === runs.length - 1) : text));
}

// The literal of every pixel, row by row.
function pixelLiterals({ width, height, runs }) {
  const literals = new Int32Array(width * height);
  let at = 0;
  for (let i = 0; i < runs.length; i += 2) literals.fill(runs[i], at, (at += runs[i + 1]));
  return literals;
}

function canvas({ width, height, rgb }, isShown, label) {
  const bytes = atob(rgb);
  const node = h("canvas", { width, height, role: "img", "aria-label": label });
  const pen = node.getContext("2d");
  const image = pen.createImageData(width, height);
  for (let i = 0; i < width * height; i += 1) {
    for (let c = 0; c < 3; c += 1) image.data[4 * i + c] = bytes.charCodeAt(3 * i + c);
    image.data[4 * i + 3] = isShown(i) ? 255 : 0;
  }
  pen.putImageData(image, 0, 0);
  return node;
}

// The area of a literal as rectangles, its border as segments, and its pixel nearest to the center of mass.
function region({ width, height }, literals, index) {
  const is = (x, y) => x >= 0 && y >= 0 && x < width && y < height && literals[y * width + x] === index;
  const [area, edges, pixels] = [[], [], []];
  let start = 0; // of a run of pixels
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      if (!is(x, y)) continue;
      pixels.push([x, y]);
      if (!is(x - 1, y)) start = x;
      if (!is(x + 1, y)) area.push(`M${start} ${y}H${x + 1}v1H${start}z`);
      if (!is(x, y - 1)) edges.push(`M${x} ${y}h1`);
      if (!is(x, y + 1)) edges.push(`M${x} ${y + 1}h1`);
      if (!is(x - 1, y)) edges.push(`M${x} ${y}v1`);
      if (!is(x + 1, y)) edges.push(`M${x + 1} ${y}v1`);
    }
  }
  const mean = [0, 1].map((c) => pixels.reduce((sum, pixel) => sum + pixel[c], 0) / pixels.length);
  const distance = ([x, y]) => (x - mean[0]) ** 2 + (y - mean[1]) ** 2;
  const middle = pixels.reduce((best, pixel) => (distance(pixel) < distance(best) ? pixel : best), pixels[0]);
  return { area: area.join(""), edges: edges.join(""), middle };
}

function overlay(content, literals, terms, names) {
  const { width, height } = content;
  const size = Math.max(width, height);
  const step = size / 48;
  const line = s("rect", { class: "stripe", width: step / 3, height: step });
  const units = { width: step, height: step, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" };
  const parts = [s("defs", null, s("pattern", { id: "hatch", ...units }, line))];
  const numbers = [];
  for (const [index, term] of terms) {
    const { area, edges, middle } = region(content, literals, index);
    if (!middle) continue; // a tiny region may be missing in the small copy
    const hatched = term.value > 0 ? {} : { fill: "url(#hatch)" };
    const shapes = [s("path", { class: "area", d: area, ...hatched }), s("path", { class: "halo", d: edges }), s("path", { class: "edge", d: edges })];
    parts.push(s("g", { class: sign(term) }, s("title", null, `${names[index].text}: ${withSign(term.number)}`), shapes));
    const place = { x: middle[0] + 0.5, y: middle[1] + 0.5, dy: "0.35em", "font-size": size / 18 };
    numbers.push(s("text", place, names[index].name.replace("region ", "")));
  }
  return s("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, parts, numbers);
}

function images(content, terms, names) {
  const literals = pixelLiterals(content);
  const whole = canvas(content, () => true, "The image with the regions of the sum");
  const alone = canvas(content, (i) => terms.has(literals[i]), "The regions of the sum alone");
  const isSmall = Math.max(content.width, content.height) < 128;
  const figure = (caption, ...parts) => h("figure", null, h("div", { class: isSmall ? "frame pixels" : "frame" }, parts), h("figcaption", { class: "note" }, caption));
  return h(
    "div",
    { class: "pictures" },
    figure("Numbers name the regions.", whole, overlay(content, literals, terms, names)),
    figure("The regions of the sum alone.", alone),
  );
}

const TITLES = { text: "The text, with the words that count", image: "The image, with the regions that count" };
const KEYS = {
  text: "A straight underline adds; a wavy underline subtracts. The small numbers are the contributions.",
  image: "Shaded regions with a solid outline add; hatched regions with a dashed outline subtract.",
};

// ``card`` is hidden unless a text or an image is explained.
export function drawContent(card, content, sum, names) {
  card.hidden = !content;
  if (!content) return;
  const terms = new Map(sum.terms.map((term) => [term.index, term]));
  const body = content.kind === "text"
    ? h("div", { class: "content-text", dir: "auto", tabindex: "0", role: "region", "aria-label": "The text" }, textNodes(content, terms))
    : images(content, terms, names);
  card.querySelector("h2").textContent = TITLES[content.kind];
  fill(card.querySelector(".content"), body, h("p", { class: "note" }, KEYS[content.kind]));
}
