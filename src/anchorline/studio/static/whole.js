// The whole model: how an attribute acts, what groups of cases get, another threshold, and rules that cover many cases.

import { fill, follow, h, isolate, percent, postJson, s, shortNumber } from "./base.js";
import { RULE_CASES, bar, card, number, picks, plural, table, toneOf } from "./cases.js";

const HEIGHT = 220;
const EDGE = { left: 52, right: 12, top: 12, bottom: 26 };

const selectOf = (id, text, options, onchange) =>
  h("p", { class: "inline" }, h("label", { for: id }, text), h("select", { id, onchange: (event) => onchange(event.target.value) }, h("option", { value: "" }, "Choose a column"), options.map(({ name, label }) => h("option", { value: name }, label))));

const folded = (caption, names, rows) => h("details", null, h("summary", null, "All figures"), table(caption, names, rows));
const limits = (share) => (share ? `${percent(share.low, 0)} to ${percent(share.high, 0)}` : "");

// A frame with an axis of values at the left; ``draw`` gets the places of values and of points.
function chart(node, label, ends, texts, draw) {
  const width = Math.max(260, Math.min(720, node.clientWidth || 600));
  const [low, high] = ends[0] === ends[1] ? [ends[0] - 1, ends[1] + 1] : ends;
  const y = (value) => HEIGHT - EDGE.bottom - ((value - low) / (high - low)) * (HEIGHT - EDGE.top - EDGE.bottom);
  const x = (share) => EDGE.left + share * (width - EDGE.left - EDGE.right);
  const ticks = [low, (low + high) / 2, high].map((value) => [
    s("line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: y(value), y2: y(value) }),
    s("text", { x: EDGE.left - 6, y: y(value), dy: "0.35em", "text-anchor": "end" }, shortNumber(value, 2)),
  ]);
  const names = texts.map(({ share, text, anchor }) => s("text", { x: x(share), y: HEIGHT - 8, "text-anchor": anchor }, text));
  return s("svg", { class: "chart", width, height: HEIGHT, role: "img", "aria-label": label }, ticks, names, draw(x, y));
}

const line = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

// Precision and recall; null where no case is decided so, or none is so.
function rates({ decided, wrongly, missed }) {
  const right = decided - wrongly;
  return [decided, right + missed].map((all) => (all > 1e-9 ? Math.max(0, right) / all : null));
}

export class Whole {
  constructor(about, node, { open, onError }) {
    Object.assign(this, { about, node, open, onError, turn: 0 });
  }

  stop() {
    this.turn += 1;
    this.pending?.abort();
    this.pending = null;
  }

  // Nothing is asked of the model until somebody wants to know.
  load(search, settings, isListed = true) {
    this.stop();
    this.body = { search, ...settings };
    const { columns, classes, target } = this.about;
    const ofClass = classes?.length > 2 ? this.classChoice() : null;
    // The rules of all cases have numbers, which the search knows if the list is about the same class.
    this.hasNumbers = isListed && !search && (settings.output ?? null) === (this.body.output ?? null);
    const part = (id) => h("div", { id, "aria-live": "polite" });
    const parts = [
      card("How does an attribute act?", h("p", { class: "note" }, "Rows of the table get one value after another. The line is their average, the band the middle 80%."), selectOf("acting-of", "Attribute", columns, (name) => this.show("acting", { attribute: name }, (answer) => this.acting(answer))), part("acting")),
      classes ? card("Do groups of cases get different decisions?", selectOf("groups-by", "By", columns, (name) => this.show("groups", { attribute: name }, (answer) => this.groups(answer))), part("groups")) : null,
      classes?.length === 2 && target ? card("What would another threshold do?", h("p", { class: "actions" }, h("button", { type: "button", id: "thresholds-find", onclick: () => this.show("thresholds", {}, (answer) => this.thresholds(answer)) }, "Compare thresholds")), part("thresholds")) : null,
      card("Which rules cover most cases?", h("p", { class: "note" }, `The fewest rules of up to ${RULE_CASES} of these cases.`), h("p", { class: "actions" }, h("button", { type: "button", id: "rules-find", onclick: () => this.rules() }, "Find rules")), part("rules")),
    ];
    fill(this.node, ofClass, parts);
  }

  // Of more than two classes, all cards are about one; answers about another one begin again.
  classChoice() {
    const { search, output = null } = this.body;
    const chosen = output ?? this.about.classes[0];
    this.body.output = chosen;
    const options = this.about.classes.map((label) => h("option", { value: label, selected: label === chosen }, label));
    return card("One class", h("p", { class: "inline" }, h("label", { for: "whole-class" }, "What follows is about"), h("select", { id: "whole-class", onchange: (event) => this.load(search, { ...this.body, output: event.target.value }, false) }, options)));
  }

  async show(id, wishes, draw) {
    const node = this.node.querySelector(`#${id}`);
    if (wishes.attribute === "") return fill(node);
    const turn = this.turn;
    this.wanted = { ...this.wanted, [id]: wishes.attribute };
    fill(node, h("p", { class: "note" }, "Asking the model\u2026"));
    try {
      const answer = await postJson(`/v1/whole/${id}`, { ...this.body, ...wishes });
      if (turn === this.turn && this.wanted[id] === wishes.attribute) fill(node, draw(answer));
    } catch (error) {
      if (turn !== this.turn) return undefined;
      if (error.status !== 422) return this.onError(error);
      fill(node, h("p", { class: "error", role: "alert" }, isolate(error.message)));
    }
    return undefined;
  }

  acting({ points, text, name, output, is_ordered: isOrdered, n_rows: n }) {
    const [first, last] = [points[0].place, points.at(-1).place];
    const share = (point, i) => (!isOrdered ? (i + 0.5) / points.length : first === last ? 0.5 : (point.place - first) / (last - first));
    const ends = [Math.min(...points.map(({ low }) => low)), Math.max(...points.map(({ high }) => high))];
    const texts = isOrdered ? [{ share: 0, text: points[0].text, anchor: "start" }, { share: 1, text: points.at(-1).text, anchor: "end" }] : [];
    const drawing = (x, y) => {
      const at = points.map((point, i) => x(share(point, i)));
      if (!isOrdered) return points.map(({ mean, low, high }, i) => [s("line", { class: "range", x1: at[i], x2: at[i], y1: y(low), y2: y(high) }), s("circle", { class: "mean", cx: at[i], cy: y(mean), r: 5 }), s("text", { x: at[i], y: HEIGHT - 8, "text-anchor": "middle" }, String(i + 1))]);
      const upper = points.map(({ high }, i) => [at[i], y(high)]);
      const lower = points.map(({ low }, i) => [at[i], y(low)]).reverse();
      return [s("path", { class: "spread", d: `${line([...upper, ...lower])}Z` }), s("path", { class: "line", d: line(points.map(({ mean }, i) => [at[i], y(mean)])) })];
    };
    const rows = points.map(({ text: value, mean, low, high }) => h("tr", null, h("th", { scope: "row" }, isolate(value)), number(shortNumber(mean, 3)), number(shortNumber(low, 3)), number(shortNumber(high, 3))));
    const legend = isOrdered ? null : h("ol", { class: "note levels" }, points.map(({ text: value }) => h("li", null, isolate(value))));
    return [h("p", null, isolate(text)), chart(this.node.querySelector("#acting"), text, ends, texts, drawing), legend, h("p", { class: "note" }, isolate(output), ` of ${n} rows of the table.`), folded(`How ${name} acts`, [name, "#average", "#lowest tenth below", "#highest tenth above"], rows)];
  }

  groups({ name, label, groups, text }) {
    const hasTruth = groups.some(({ wrong }) => wrong);
    const share = (each, tone = "") => [h("td", null, each ? bar(each.value, tone) : null), number(each ? percent(each.value) : ""), h("td", { class: "note" }, limits(each))];
    const rows = groups.map(({ text: group, n, decided, wrong }) => h("tr", null, h("th", { scope: "row" }, isolate(group)), number(n), share(decided, `class ${toneOf(this.about, label)}`), hasTruth ? share(wrong) : null));
    const names = [name, "#cases", "", `#${label}`, "limits", ...(hasTruth ? ["", "#wrong", "limits"] : [])];
    return [h("p", null, isolate(text)), table(`Decisions by ${name}`, names, rows), h("p", { class: "note" }, "All limits hold together, with 95% confidence.")];
  }

  thresholds({ label, n, own, points, text }) {
    const ends = [0, Math.max(...points.map(({ wrongly, missed }) => Math.max(wrongly, missed)))];
    const texts = [{ share: 0, text: "0", anchor: "start" }, { share: 0.5, text: "0.5", anchor: "middle" }, { share: 1, text: "1", anchor: "end" }];
    const curve = (x, y, key) => line(points.map((point) => [x(point.threshold), y(point[key])]));
    const drawing = (x, y) => [s("line", { class: "own", x1: x(own), x2: x(own), y1: y(ends[0]), y2: y(ends[1]) }), s("path", { class: "line", d: curve(x, y, "wrongly") }), s("path", { class: "line other", d: curve(x, y, "missed") })];
    const rows = points.map(({ threshold, decided, wrongly, missed }) => h("tr", null, h("th", { scope: "row" }, String(threshold)), ...[decided, wrongly, missed, ...rates({ decided, wrongly, missed })].map((share) => number(share === null ? "" : percent(share)))));
    const key = (kind, words) => h("span", null, s("svg", { width: 24, height: 10, "aria-hidden": "true" }, s("path", { class: `line ${kind}`, d: "M0 5h24" })), " ", words);
    return [
      h("p", null, isolate(text)),
      chart(this.node.querySelector("#thresholds"), text, ends, texts, drawing),
      h("p", { class: "note shades" }, key("", [isolate(label), " by mistake"]), key("other", ["not ", isolate(label), " by mistake"])),
      h("p", { class: "note" }, `Shares of ${n} cases; the upright line is the threshold in use.`),
      folded("Errors by threshold", ["threshold", `#decided ${label}`, "#by mistake", "#missed", "#precision", "#recall"], rows),
    ];
  }

  async rules() {
    const node = this.node.querySelector("#rules");
    this.pending?.abort();
    const pending = new AbortController();
    this.pending = pending;
    try {
      for await (const answer of follow("/v1/whole/rules", { ...this.body, k: null, n_rows: RULE_CASES }, pending.signal)) {
        if (pending === this.pending) fill(node, this.covering(answer));
      }
    } catch (error) {
      if (error.name !== "AbortError" && pending === this.pending) this.onError(error);
    }
  }

  covering({ lines, is_done: isDone, progress, n_explained: n }) {
    const wait = isDone ? null : h("p", { class: "note" }, h("progress", { max: 1, value: progress, "aria-label": "Progress of the rules" }), ` ${plural(n, "rule")} so far`);
    const rules = lines.filter(({ kind }) => kind === "rule");
    const rule = (each) => [
      h("p", null, !this.hasNumbers ? null : [h("code", null, `rule=${rules.indexOf(each) + 1}`), " "], h("b", null, isolate(each.text))),
      picks(each.cases, each.text, this.open),
      each.others.length ? [h("p", { class: "note" }, "With these facts, but another decision:"), picks(each.others, `not ${each.text}`, this.open)] : null,
    ];
    const hint = isDone && rules.length && this.hasNumbers ? h("p", { class: "note" }, "Type rule=1 into the search to list all cases with the facts of the first rule.") : null;
    return [wait, hint, lines.map((each) => (each.kind === "rule" ? rule(each) : h("p", { class: "note" }, isolate(each.text))))];
  }
}

// The comparison of the server's model with the one before; asked for by a button, because it takes a while.

export class Models {
  constructor(about, node, { open, onError, download }) {
    Object.assign(this, { about, node, open, onError, download, answer: null, by: "" });
  }

  stop() {
    this.pending?.abort();
    this.pending = null;
  }

  show() {
    const { previous, name, columns } = this.about;
    const choose = h("select", { id: "models-by", onchange: (event) => { this.by = event.target.value; } }, h("option", { value: "" }, "all cases alike"), columns.map((column) => h("option", { value: column.name, selected: column.name === this.by }, column.label)));
    const button = this.pending ? h("button", { type: "button", id: "models-stop", onclick: () => { this.stop(); this.show(); } }, "Stop") : h("button", { type: "button", class: "primary", id: "models-find", onclick: () => this.find() }, "Compare");
    fill(
      this.node,
      h("section", { class: "card" }, h("h1", null, "Old model, new model"),
        h("p", { class: "note" }, "Old: ", isolate(previous), ". New: ", isolate(name), ". Both answer the same copies of the same cases."),
        h("p", { class: "inline" }, h("label", { for: "models-by" }, "Decisions by"), choose, button),
        h("div", { "aria-live": "polite" }, this.pending ? this.bar : null, this.problem ? h("p", { class: "error", role: "alert" }, isolate(this.problem)) : null)),
      (this.answer?.blocks ?? []).map((block) => this.block(block)),
      this.answer ? h("p", { class: "actions" }, h("button", { type: "button", id: "models-data", onclick: () => this.download(this.answer) }, "Download record")) : null,
    );
  }

  block({ title, sentences, head, rows }) {
    const link = (row) => h("button", { type: "button", class: "pick", onclick: () => this.open(Number(row)), "aria-label": `Open case ${row}` }, `#${row}`);
    const cells = rows.map(([first, ...others]) => h("tr", null, h("th", { scope: "row" }, head[0] === "row" ? link(first) : isolate(first)), others.map((text) => h("td", null, isolate(text)))));
    return card(title || "Decisions and explanations", sentences.map((text) => h("p", null, isolate(text))), rows.length ? table(title, head, cells) : null);
  }

  async find() {
    this.stop();
    const pending = new AbortController();
    const bar = h("progress", { max: "1", value: 0, "aria-label": "Progress of the comparison" });
    Object.assign(this, { pending, bar, answer: null, problem: null });
    this.show();
    try {
      for await (const answer of follow("/v1/compare", { by: this.by || null }, pending.signal)) {
        if (answer.is_done && pending === this.pending) this.answer = answer;
        bar.value = answer.progress;
      }
    } catch (error) {
      if (error.name === "AbortError" || pending !== this.pending) return;
      if (error.status === 422) this.problem = error.message;
      else this.onError(error);
    }
    this.pending = null;
    this.show();
  }
}
