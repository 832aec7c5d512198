// The card that finds a rule: its facts, each with a band of all values of its column, and its evidence.

import { fill, h, isolate, s } from "./dom.js";

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
      h("details", null, h("summary", null, "How we know"), details.map(({ kind, text }) => h("p", { class: `note ${kind}` }, isolate(text)))),
      h("p", { class: "actions" }, h("button", { type: "button", id: "rule-data", onclick: () => this.download(this.answer) }, "Download data")),
    ];
  }
}
