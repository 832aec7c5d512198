// The card that finds what would change the decision; one click applies an example to the what-if card.

import { fill, h, isolate } from "./dom.js";

const LIMITS = [[">=", "at least"], ["<=", "at most"]];

export class Changes {
  constructor(about, container, { search, apply }) {
    this.about = about;
    this.container = container;
    this.search = search;
    this.apply = apply;
  }

  // A new case: nothing is searched until it is asked for.
  open(view) {
    Object.assign(this, { view, fixed: [], answer: null, isPending: false, wanted: "", sign: ">=", limit: "" });
    this.draw();
  }

  target() {
    if (this.wanted) return this.wanted;
    return this.limit === "" ? null : `${this.sign} ${this.limit}`;
  }

  async find(fixed = this.fixed) {
    this.fixed = fixed;
    const { view } = this;
    this.isPending = true;
    this.draw();
    try {
      const answer = await this.search({ target: this.target(), fixed });
      if (view === this.view) this.answer = answer;
    } finally {
      if (view === this.view) this.isPending = false;
      this.draw();
    }
  }

  draw() {
    const parts = [this.form(), this.held(), h("div", { "aria-live": "polite" }, this.results())];
    const focused = document.activeElement?.id;
    fill(this.container, parts);
    if (focused && this.container.querySelector(`#${focused}`)) document.getElementById(focused).focus();
  }

  form() {
    const onsubmit = (event) => {
      event.preventDefault();
      this.find();
    };
    const button = { type: "submit", id: "changes-find", disabled: this.isPending };
    return h("form", { class: "inline", onsubmit }, this.fields(), h("button", button, "Find the fewest changes"));
  }

  // Two classes need no choice; numbers need a limit, unless the model decides by a threshold.
  fields() {
    const select = (id, text, options, value, name) => {
      const onchange = (event) => {
        this[name] = event.target.value;
      };
      const choices = options.map(([key, label]) => h("option", { value: key, selected: key === value }, label));
      return [h("label", { for: id }, text), h("select", { id, onchange }, choices)];
    };
    const classes = this.about.classes;
    if (classes?.length > 2) {
      const options = [["", "any other decision"], ...classes.map((label) => [label, label])];
      return select("changes-wanted", "Wanted", options, this.wanted, "wanted");
    }
    if (this.view.class !== null || this.view.label !== null) return null;
    const oninput = (event) => {
      this.limit = event.target.value;
    };
    const field = { id: "changes-limit", type: "number", step: "any", value: this.limit, oninput, "aria-label": "Limit" };
    return [select("changes-sign", "Wanted", LIMITS, this.sign, "sign"), h("input", field)];
  }

  held() {
    if (!this.fixed.length) return null;
    const names = this.fixed.map((name, i) => [i ? ", " : "", isolate(name)]);
    const onclick = () => this.find([]);
    return h("p", { class: "note" }, "Held fixed: ", names, " ", h("button", { type: "button", id: "changes-allow", onclick }, "Allow again"));
  }

  results() {
    if (this.isPending) return h("p", { class: "note" }, "Querying the model\u2026");
    if (!this.answer) return null;
    const { headline, options, tried } = this.answer;
    return [
      h("p", null, isolate(headline)),
      options.length ? h("ol", null, options.map((option, i) => this.option(option, i))) : null,
      tried.map((line) => h("p", { class: "note" }, isolate(line))),
    ];
  }

  option({ lines, edits, names }, i) {
    const [first, ...others] = lines;
    const ruleOut = () => this.find([...new Set([...this.fixed, ...names])]);
    return h(
      "li",
      null,
      h("p", null, h("b", null, isolate(first))),
      others.map((line) => h("p", { class: "note" }, isolate(line))),
      h(
        "p",
        { class: "actions" },
        h("button", { type: "button", id: `apply-${i}`, "aria-label": `Apply: ${first}`, onclick: () => this.apply(edits, names) }, "Apply"),
        h("button", { type: "button", id: `rule-out-${i}`, "aria-label": `Not possible: ${first}`, onclick: ruleOut }, "Not possible"),
      ),
    );
  }
}
