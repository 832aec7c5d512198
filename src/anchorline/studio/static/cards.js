// The cards below the sum: what if, a rule, and what would change the decision.

import { fill, h, isolate, percent, s, shortNumber, withMinusSign } from "./base.js";
import { editor } from "./form.js";

// The what-if card: other values of a row, another text, or words and regions to take out; then the model's answer.

export class WhatIf {
  constructor(about, container, { onChange, onExplain }) {
    this.columns = about.columns.map((column, index) => ({ ...column, index }));
    this.isTable = about.is_table;
    Object.assign(this, { container, onChange, onExplain, isOpen: false });
    this.forget();
  }

  // While a query is pending, the last answer stays.
  draw(state, view, answer, isPending) {
    const focused = document.activeElement?.id;
    const stated = new Set(view.sum.facts.map(({ column }) => column));
    const fields = (columns) => columns.map((column) => editor(column, answer.row[column.name], (value, typed) => this.edit(state, column.name, value, typed), this.refused));
    let form = null;
    if (answer && this.isTable) {
      const others = this.columns.filter(({ name }) => !stated.has(name));
      const rest = { class: "rest", open: this.isOpen || !stated.size, ontoggle: (event) => { this.isOpen = event.target.open; } };
      form = [
        h("div", { class: "fields" }, fields(this.columns.filter(({ name }) => stated.has(name)))),
        others.length ? h("details", rest, h("summary", null, `Other columns (${others.length})`), h("div", { class: "fields" }, fields(others))) : null,
      ];
    } else if (answer) form = [this.parts(state, view), this.columns[0].kind === "texts" ? fields(this.columns) : null];
    const isChanged = Object.keys(state.edits).length || state.broken.length;
    const isImage = this.columns[0].kind === "images"; // a changed image has no place in the list
    const explain = { type: "button", id: "explain-changed", disabled: !isChanged || isPending || !answer, onclick: () => this.onExplain(answer.row) };
    const reset = { type: "button", id: "reset", disabled: !isChanged, onclick: () => { this.forget(); this.onChange({}, []); } };
    const buttons = [isImage ? null : h("button", explain, "Explain the changed case"), h("button", reset, "Undo all changes")];
    const outcome = isPending || !answer ? h("p", { class: "outcome" }, "Asking the model\u2026") : this.outcome(view, answer, isChanged);
    fill(this.container, h("div", { class: "what-if-columns" }, h("div", null, form), h("div", { "aria-live": "polite" }, outcome, h("div", { class: "inline" }, buttons))));
    if (focused) document.getElementById(focused)?.focus();
  }

  // The words or regions of the sum, each of which can be taken out.
  parts(state, view) {
    const box = ({ attribute, text }, i) => {
      const isKept = !state.broken.includes(attribute);
      const broken = isKept ? [...state.broken, attribute] : state.broken.filter((name) => name !== attribute);
      const input = h("input", { type: "checkbox", id: `fact-${i}`, checked: isKept, onchange: () => this.onChange(state.edits, broken) });
      return h("li", null, h("label", null, input, " ", isolate(text)));
    };
    return h("ul", { class: "facts" }, view.sum.facts.map(box));
  }

  outcome(view, answer, isChanged) {
    if (!isChanged) return h("p", { class: "outcome" }, "Nothing has been changed yet.");
    const number = (value) => (view.is_probability ? percent(value) : `${shortNumber(value)}${view.unit ? ` ${view.unit}` : ""}`);
    const says = answer.decision_stays === null ? null : `The decision ${answer.decision_stays ? "stays the same" : "changes"}. Now: `;
    const row = (name, value) => h("div", null, h("dt", null, name), h("dd", null, withMinusSign(number(value))));
    const broken = view.sum.facts.filter((_, i) => answer.is_broken[i]).map(({ text }) => h("li", null, isolate(text)));
    return [
      says ? h("p", { class: "outcome" }, says, h("b", null, isolate(answer.answer))) : null,
      h("p", { class: "note" }, isolate(view.output)),
      h("dl", { class: "values-list" }, row("this case", answer.original), row("changed case", answer.prediction), row("by the sum", answer.expected)),
      broken.length ? [h("p", { class: "note" }, `No longer true:`), h("ul", { class: "note" }, broken)] : h("p", { class: "note" }, `All ${view.facts} of the sum are still true.`),
    ];
  }

  // Says beside the field why its value is refused; returns whether there is such a field.
  refuse(why) {
    this.refused = this.typed ? { ...this.typed, why } : null;
    this.typed = null;
    return this.refused !== null;
  }

  forget() {
    Object.assign(this, { typed: null, refused: null });
  }

  edit(state, name, value, typed) {
    Object.assign(this, { typed: typed ?? null, refused: null });
    this.onChange({ ...state.edits, [name]: value }, state.broken);
  }
}

// The card that finds a rule: its facts, each with a band of all values of its column, and its evidence.

const SHARES = [["0.9", "90%"], ["0.95", "95%"], ["0.99", "99%"]];
const SIGNS = { always: "\u2713", holds: "\u2713", falls_short: "\u2717", undecided: "?", measured: "\u2248" };
const TOP = 26; // pixels above a band, for the case's own value
const HEIGHT = 20;
const LINE = 16;
const cssPercent = (share) => `${(100 * share).toFixed(2)}%`;

const shaded = (shade) => (shade === null ? { class: "untried" } : { class: "shade", "fill-opacity": shade });

function band({ parts, frame, own, labels, n_rows: nRows, summary }) {
  const place = ([start, end], more = 0) => ({ x: cssPercent(start), width: cssPercent(end - start), y: TOP - more, height: HEIGHT + 2 * more });
  const below = (row) => (row < 0 ? TOP - 12 : TOP + HEIGHT + LINE * (row + 1));
  return s(
    "svg",
    { class: "band", width: "100%", height: TOP + HEIGHT + LINE * nRows + 6, role: "img", "aria-label": summary },
    parts.map(({ start, end, shade, text }) => s("g", null, s("title", null, text), s("rect", { ...shaded(shade), ...place([start, end]) }))),
    s("rect", { class: "bounds", ...place(frame, 2) }),
    s("svg", { x: cssPercent(own) }, s("path", { class: "own", d: `M-6 ${TOP - 9}h12l-6 9z` })),
    labels.map(({ place: x, anchor, text, row }) => s("text", { x: cssPercent(x), y: below(row), "text-anchor": anchor }, text)),
  );
}

function legend(shades) {
  const swatch = (shade) => s("svg", { width: 22, height: 12, "aria-hidden": "true" }, s("rect", { ...shaded(shade), width: 22, height: 12 }));
  return h("p", { class: "note shades" }, shades.map(({ shade, text }) => h("span", null, swatch(shade), ` ${text}`)));
}

export class Rule {
  constructor(container, { search, meter, download }) {
    Object.assign(this, { container, search, meter, download, holds: "0.95" });
  }

  // A new case: a search for another one ends, and nothing is searched until it is asked for.
  open(view) {
    this.stop();
    Object.assign(this, { view, answer: null });
    this.draw();
  }

  stop() {
    this.pending?.abort();
    this.pending = null;
  }

  async find() {
    this.stop();
    const pending = new AbortController();
    this.pending = pending;
    this.draw();
    const answer = await this.search({ holds: Number(this.holds) }, pending.signal);
    if (pending !== this.pending) return;
    Object.assign(this, { answer, pending: null });
    this.draw();
  }

  draw() {
    const focused = this.container.contains(document.activeElement) ? document.activeElement.id : null;
    const onsubmit = (event) => {
      event.preventDefault();
      this.find();
    };
    const onchange = (event) => {
      this.holds = event.target.value;
    };
    const choices = SHARES.map(([value, label]) => h("option", { value, selected: value === this.holds }, label));
    const isAdvised = ["not_explained", "partly_explained", "undecided"].includes(this.view.verdict.code) && !this.answer;
    fill(
      this.container,
      h(
        "form",
        { class: "inline", onsubmit },
        h("label", { for: "rule-holds" }, "Holds in at least"),
        h("select", { id: "rule-holds", onchange }, choices),
        this.pending ? h("button", { type: "button", id: "rule-stop", onclick: () => this.cancel() }, "Stop") : h("button", { type: "submit", id: "rule-find", class: isAdvised ? "primary" : null }, "Find a rule"),
      ),
      h("div", { "aria-live": "polite", class: "found" }, this.result()),
    );
    if (focused !== null) (document.getElementById(focused) ?? this.container.querySelector("button")).focus();
  }

  cancel() {
    this.stop();
    this.draw();
  }

  result() {
    if (this.pending) return h("p", { class: "note" }, "Asking the model\u2026");
    if (!this.answer) return null;
    const { verdict, best, facts, bands, shades, caption, evidence, meters, details } = this.answer;
    const ends = facts.length && !best ? ":" : "";
    return [
      h("p", { class: `verdict ${verdict.code}` }, h("span", { "aria-hidden": "true" }, `${SIGNS[verdict.code]} `), isolate(verdict.text), ends),
      best ? h("p", null, best, ":") : null,
      facts.length ? h("ul", { class: "rule-facts" }, facts.map((text, i) => h("li", null, i ? "and " : "", h("b", null, isolate(text)), band(bands[i])))) : null,
      facts.length ? legend(shades) : null,
      evidence.map((text) => h("p", null, isolate(text))),
      meters.length ? h("div", { class: "meters", "aria-hidden": "true" }, meters.map(this.meter)) : null,
      facts.length ? h("p", { class: "note" }, caption) : null,
      h("details", null, h("summary", null, "How do we know?"), details.map(({ kind, text }) => h("p", { class: `note ${kind}` }, isolate(text)))),
      h("p", { class: "actions" }, h("button", { type: "button", id: "rule-data", onclick: () => this.download(this.answer) }, "Download data")),
    ];
  }
}

// The card with the reasons of an adverse decision, for the letter, which is printed alone.

export class Reasons {
  constructor(card, container, { search, print, download }) {
    Object.assign(this, { card, container, search, print, download });
  }

  // A new case: the search for the reasons of another one ends.
  async open(view) {
    this.pending?.abort();
    this.card.hidden = !view.is_adverse;
    fill(this.container);
    if (!view.is_adverse) return;
    const pending = new AbortController();
    this.pending = pending;
    fill(this.container, h("p", { class: "note" }, "Asking the model\u2026"));
    try {
      const answer = await this.search(pending.signal);
      if (pending === this.pending) this.draw(answer);
    } catch (error) {
      if (error.status !== 422) throw error;
      if (pending === this.pending) fill(this.container, h("p", { class: "error", role: "alert" }, isolate(error.message)));
    }
  }

  draw(answer) {
    const bar = (share) => h("span", { class: "rail" }, h("i", { style: { width: `${100 * share}%` } }));
    const row = ({ text, amount, share }) => h("tr", { class: "fact" }, h("td", { class: "number" }, withMinusSign(amount)), h("th", { scope: "row" }, isolate(text)), h("td", { class: "size", "aria-hidden": "true" }, bar(share)));
    const head = h("tr", null, h("th", { scope: "col", class: "number" }, "shortfall"), h("th", { scope: "col" }, "reason"), h("td", { "aria-hidden": "true" }));
    const button = (id, label, onclick) => h("button", { type: "button", id, onclick: () => onclick(answer) }, label);
    fill(
      this.container,
      h("p", { class: "note" }, isolate(answer.lead)),
      h("table", { class: "sum" }, h("caption", { class: "visually-hidden" }, "Reasons, worst first"), h("thead", null, head), h("tbody", null, answer.reasons.map(row))),
      answer.notes.map((text) => h("p", null, isolate(text))),
      h("p", { class: "actions" }, button("letter-print", "Print the letter", this.print), button("reasons-data", "Download record", this.download)),
      h("details", null, h("summary", null, "How do we know?"), answer.details.map(({ kind, text }) => h("p", { class: `note ${kind}` }, isolate(text)))),
    );
  }
}

// The card that finds what would change the decision; one click applies an example to the what-if card.

const LIMITS = [[">=", "at least"], ["<=", "at most"]];

export class Changes {
  constructor(about, container, { search, apply }) {
    Object.assign(this, { about, container, search, apply });
  }

  // A new case: nothing is searched until it is asked for.
  open(view) {
    Object.assign(this, { view, fixed: [], answer: null, isPending: false, wanted: "", sign: ">=", limit: "" });
    this.draw();
  }

  async find(fixed = this.fixed) {
    const { view } = this;
    Object.assign(this, { fixed, isPending: true });
    this.draw();
    try {
      const target = this.wanted || (this.limit === "" ? null : `${this.sign} ${this.limit}`);
      const answer = await this.search({ target, fixed });
      if (view === this.view) this.answer = answer;
    } finally {
      if (view === this.view) this.isPending = false;
      this.draw();
    }
  }

  draw() {
    const focused = document.activeElement?.id;
    const onsubmit = (event) => {
      event.preventDefault();
      this.find();
    };
    const button = h("button", { type: "submit", id: "changes-find", disabled: this.isPending }, "Find the fewest changes");
    fill(this.container, h("form", { class: "inline", onsubmit }, this.fields(), button), this.held(), h("div", { "aria-live": "polite" }, this.results()));
    if (focused && this.container.querySelector(`#${focused}`)) document.getElementById(focused).focus();
  }

  // Two classes need no choice; numbers need a limit.
  fields() {
    const select = (id, options, name) => {
      const onchange = (event) => {
        this[name] = event.target.value;
      };
      const choices = options.map(([key, label]) => h("option", { value: key, selected: key === this[name] }, label));
      return [h("label", { for: id }, "Wanted"), h("select", { id, onchange }, choices)];
    };
    const classes = this.about.classes;
    if (classes?.length > 2) return select("changes-wanted", [["", "any other decision"], ...classes.map((label) => [label, label])], "wanted");
    if (!this.view.is_number) return null;
    const oninput = (event) => {
      this.limit = event.target.value;
    };
    const field = { id: "changes-limit", type: "number", step: "any", value: this.limit, oninput, "aria-label": "Limit" };
    return [select("changes-sign", LIMITS, "sign"), h("input", field)];
  }

  held() {
    const { columns, immutable } = this.about;
    const own = this.fixed.map((name) => columns.find((column) => column.name === name)?.label ?? name);
    const names = [...new Set([...immutable, ...own])].join(", ");
    if (!names) return null;
    return h("p", { class: "note" }, "Not changed: ", isolate(names), " ", own.length === 0 ? null : h("button", { type: "button", id: "changes-allow", onclick: () => this.find([]) }, "Allow again"));
  }

  results() {
    if (this.isPending) return h("p", { class: "note" }, "Asking the model\u2026");
    if (!this.answer) return null;
    const { headline, options, notes, details } = this.answer;
    return [
      headline ? h("p", null, isolate(headline)) : null,
      options.length ? h("ul", null, options.map((option, i) => this.option(option, i))) : null,
      notes.map((line) => h("p", null, isolate(line))),
      h("details", null, h("summary", null, "How do we know?"), details.map((line) => h("p", { class: "note" }, isolate(line)))),
    ];
  }

  option({ text, edits, names }, i) {
    const ruleOut = () => this.find([...new Set([...this.fixed, ...names])]);
    const button = (id, label, onclick) => h("button", { type: "button", id: `${id}-${i}`, "aria-label": `${label}: ${text}`, onclick }, label);
    return h("li", null, isolate(text), h("p", { class: "actions" }, button("apply", "Apply", () => this.apply(edits, names)), button("rule-out", "Not possible", ruleOut)));
  }
}
