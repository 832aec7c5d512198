// Downloads the server's report, the sealed data and a picture, which is drawn here on a canvas.

import { post } from "./api.js";
import { withMinusSign, withSign } from "./format.js";
import { SIGNS } from "./gauge.js";
import { levels } from "./waterfall.js";

export function save(content, name) {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export async function report(request, name) {
  save(await (await post("/page/report", request)).blob(), name);
}

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif';
const TONES = { trustworthy: "good", weak: "fair", unreliable: "bad" }; // all others are "soft"
const [WIDE, PAD, ROW] = [1000, 40, 42];

class Paper {
  constructor(height) {
    this.canvas = document.createElement("canvas");
    this.canvas.width = 2 * WIDE;
    this.canvas.height = 2 * height;
    this.pen = this.canvas.getContext("2d");
    this.pen.scale(2, 2);
    const style = getComputedStyle(document.documentElement);
    this.color = (name) => style.getPropertyValue(`--${name}`).trim();
    this.pen.fillStyle = this.color("card");
    this.pen.fillRect(0, 0, WIDE, height);
  }

  text(words, x, y, { size = 16, bold = false, color = "ink", align = "left", maxWidth = WIDE - 2 * PAD } = {}) {
    this.pen.font = `${bold ? 600 : 400} ${size}px ${FONT}`;
    this.pen.fillStyle = this.color(color);
    this.pen.textAlign = align;
    this.pen.textBaseline = "middle";
    let length = words.length;
    const clipped = () => (length < words.length ? `${words.slice(0, length).trimEnd()}\u2026` : words);
    while (length > 4 && this.pen.measureText(clipped()).width > maxWidth) length -= 1;
    this.pen.fillText(clipped(), x, y);
  }

  wrapped(words, x, y, options) {
    this.pen.font = `${options.bold ? 600 : 400} ${options.size}px ${FONT}`;
    const lines = [""];
    for (const word of words.split(" ")) {
      const longer = `${lines.at(-1)} ${word}`.trim();
      if (this.pen.measureText(longer).width > WIDE - 2 * PAD && lines.at(-1)) lines.push(word);
      else lines[lines.length - 1] = longer;
    }
    lines.forEach((line, i) => this.text(line, x, y + i * options.size * 1.45, options));
    return y + lines.length * options.size * 1.45;
  }

  strip(x, y, width, height, isPositive) {
    const color = this.color(isPositive ? "plus" : "minus");
    this.pen.fillStyle = this.pen.strokeStyle = color;
    if (isPositive) {
      this.pen.fillRect(x, y, Math.max(2, width), height);
      return;
    }
    this.pen.save();
    this.pen.lineWidth = 1.5;
    this.pen.strokeRect(x, y, Math.max(2, width), height);
    this.pen.beginPath();
    this.pen.rect(x, y, width, height);
    this.pen.clip();
    for (let i = -height; i < width + height; i += 7) {
      this.pen.beginPath();
      this.pen.moveTo(x + i, y + height);
      this.pen.lineTo(x + i + height, y);
      this.pen.stroke();
    }
    this.pen.restore();
  }
}

// The height of wrapped texts is not known before they are measured, so an estimate leaves room for all lines.
const linesOf = (words, size) => Math.ceil((words.length * size * 0.62) / (WIDE - 2 * PAD)) + 1;

export function drawPicture(view, headline, sentence, kicker, footer) {
  const { steps } = levels(view.sum);
  const { intercept, terms, total } = view.sum;
  const level = (text, part) => ({ text, number: withMinusSign(part.number), from: part.value, to: part.value, kind: "dot" });
  const rows = terms.map((term, i) => ({
    text: view.literals[term.index].text,
    number: withSign(term.number),
    from: steps[i].before,
    to: steps[i].after,
    kind: "strip",
  }));
  if (intercept) rows.unshift(level("starting level", intercept));
  rows.push({ ...level(view.total, total), bold: true });
  const all = rows.flatMap((row) => [row.from, row.to]);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const texts = [[sentence, 18], [`${view.verdict.title}. ${view.verdict.meaning}`, 18], [view.in_population, 15], [footer, 13]];
  const height = texts.reduce((sum, [words, size]) => sum + linesOf(words, size) * size * 1.45, 0);
  const paper = new Paper(170 + height + rows.length * ROW);
  paper.text(kicker, PAD, 44, { size: 15, color: "soft" });
  paper.text(headline, PAD, 82, { size: 34, bold: true });
  let y = paper.wrapped(sentence, PAD, 128, { size: 18 }) + 26;
  const x = (value) => 510 + (440 * (value - low)) / (high - low || 1);
  for (const row of rows) {
    if (row.bold) {
      paper.pen.fillStyle = paper.color("ink");
      paper.pen.fillRect(PAD, y - ROW / 2, WIDE - 2 * PAD, 1.5);
    }
    paper.text(row.text, PAD, y, { size: 17, bold: row.bold, maxWidth: 330 });
    paper.text(row.number, 470, y, { size: 17, bold: row.bold, align: "right" });
    if (row.kind === "strip") {
      const width = Math.abs(x(row.to) - x(row.from));
      paper.strip(x(Math.min(row.from, row.to)), y - 11, width, 20, row.to >= row.from);
    } else {
      paper.pen.fillStyle = paper.color("ink");
      paper.pen.beginPath();
      paper.pen.arc(x(row.to), y - 1, 5.5, 0, 7);
      paper.pen.fill();
    }
    y += ROW;
  }
  const { name, title, meaning } = view.verdict;
  y += 6;
  const verdict = `${SIGNS[name]} ${title[0].toUpperCase()}${title.slice(1)}. ${meaning}`;
  y = paper.wrapped(verdict, PAD, y, { size: 17, bold: true, color: TONES[name] ?? "soft" }) + 8;
  y = paper.wrapped(view.in_population, PAD, y, { size: 15, color: "soft" }) + 8;
  paper.wrapped(footer, PAD, y, { size: 13, color: "soft" });
  return new Promise((resolve) => paper.canvas.toBlob(resolve, "image/png"));
}

