// The list of cases, and the summary of all of them.

import { announce, byId, call, count, fill, follow, get, h, isolate, percent, save, shortNumber, truthText, valueText } from "./base.js";

// The list of cases, which the server searches and sorts; usable by mouse or keyboard.

const PAGE_SIZE = 50;
export const RULE_CASES = 30; // whose rules are found; each takes about a second

// One color per class, wherever it is shown.
export const toneOf = (about, label) => (about.classes?.includes(label) ? `tone${about.classes.indexOf(label) % 4}` : "");

export class Cases {
  constructor(about, { open, compare, onError, settings }) {
    this.about = about;
    this.settings = settings;
    this.open = open;
    this.compare = compare;
    this.onError = onError;
    this.offset = 0;
    this.selected = null;
    this.pending = null;
    byId("search").addEventListener("input", () => {
      this.suggest();
      this.debounce(() => this.restart());
    });
    byId("search").addEventListener("focus", () => this.suggest());
    if (about.searches.length) byId("search").placeholder = `Search, e.g. ${about.searches[0]}`;
    byId("search").addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown" || event.key === "Enter") {
        event.preventDefault();
        this.focus(0);
      }
    });
    byId("sort").addEventListener("change", () => this.restart());
    byId("earlier").addEventListener("click", () => this.movePage(-PAGE_SIZE));
    byId("later").addEventListener("click", () => this.movePage(PAGE_SIZE));
    byId("listing").addEventListener("keydown", (event) => this.moveFocus(event));
    if (!about.is_ranked) byId("sort").hidden = true;
  }

  debounce(action) {
    clearTimeout(this.timer);
    clearTimeout(this.polling);
    this.timer = setTimeout(action, 120);
  }

  // Offers beginnings of the last word, after the words before it.
  suggest() {
    const before = byId("search").value.replace(/(?:"[^"]*"?|[^\s"])*$/, "");
    fill(byId("searches"), this.about.searches.map((text) => h("option", { value: `${before}${text}` })));
  }

  get search() {
    return byId("search").value.trim();
  }

  restart() {
    this.offset = 0;
    return this.load(true);
  }

  movePage(step) {
    this.offset = Math.max(0, this.offset + step);
    return this.load(true);
  }

  async load(isUserAction = false) {
    this.pending?.abort();
    this.pending = new AbortController();
    const query = { search: this.search, sort: byId("sort").value, offset: this.offset, limit: PAGE_SIZE, ...this.settings() };
    try {
      const page = await get(`/v1/rows?${new URLSearchParams(query)}`, this.pending.signal);
      this.draw(page);
      clearTimeout(this.polling);
      if (page.progress < 1) this.polling = setTimeout(() => this.load(), 300); // the server goes on with each request
      if (isUserAction) this.changed?.();
    } catch (error) {
      if (error.name !== "AbortError") this.onError(error);
    }
  }

  draw(page) {
    this.asksKnown = page.explained !== null; // what is known depends on the settings
    const last = page.offset + page.rows.length;
    const total = page.found.toLocaleString("en");
    byId("place").textContent = page.found ? `${page.offset + 1}\u2013${last} of ${total}` : "no matches";
    byId("earlier").disabled = page.offset === 0;
    byId("later").disabled = last >= page.found;
    const names = ["Case", "Answer", "Values", "Compare"].map((name) => h("th", { scope: "col" }, name));
    const table = h(
      "table",
      null,
      h("caption", { class: "visually-hidden" }, "Cases with the model's answers"),
      h("thead", { class: "visually-hidden" }, h("tr", null, names)),
      h("tbody", null, page.rows.map((row) => this.row(row, this.about.columns))),
    );
    const share = Math.floor(100 * page.progress);
    const unfinished = `The model has answered ${share}% of the cases so far. More cases may match or come first.`;
    const none = page.progress < 1 ? "No case matches so far." : ["No case matches all these words.", ...page.notes].join(" ");
    const progress = page.progress < 1 ? h("p", { class: "note progress", role: "status" }, unfinished) : null;
    fill(byId("listing"), progress, page.explained ? this.explained(page.explained) : null, page.rows.length ? table : h("p", { class: "note" }, none));
    this.mark();
  }

  // What is known of explained cases, and a button that finds out more.
  explained({ text, asks, search }) {
    const label = { facts: "Explain more cases", rules: "Find the rules" }[asks];
    const find = (event) => this.findOut(event.target.parentNode, asks, search).catch((error) => error.name === "AbortError" || this.onError(error));
    return h("div", { class: "note progress", role: "status" }, isolate(text), label ? h("p", { class: "actions" }, h("button", { type: "button", id: "find-out", onclick: find }, label)) : null);
  }

  // Another search ends this; what was found until then is kept by the server.
  async findOut(node, asks, search) {
    const pending = this.pending;
    const { k, ...others } = this.settings();
    const body = asks === "facts" ? { search, k, ...others } : { ...others, n_rows: RULE_CASES };
    const bar = h("progress", { max: "1", "aria-label": "Progress" });
    fill(node, bar, h("button", { type: "button", id: "find-stop", onclick: () => this.load() }, "Stop"));
    for await (const { progress } of follow(asks === "facts" ? "/v1/overview" : "/v1/whole/rules", body, pending.signal)) bar.value = progress;
    if (pending === this.pending) await this.load();
  }

  row(row, columns) {
    const { position } = row;
    const values = row.values.map((value, i) => {
      const pair = h("span", null, isolate(columns[i].label), " ", h("b", null, isolate(valueText(value))));
      return [i ? " \u00b7 " : "", pair];
    });
    const number = row.value === null ? "" : this.about.classes ? percent(row.value, 0) : shortNumber(row.value);
    const isText = this.about.classes || row.value === null;
    const pick = h("button", { type: "button", class: "pick", tabindex: "-1", onclick: () => this.open(position) }, `#${position}`);
    const share = isText && number ? h("span", { class: "share" }, ` ${number}`) : null;
    const truth = row.truth === undefined || row.truth === null || row.truth === row.answer ? null
      : h("span", { class: this.about.classes ? "truth" : "truth number", title: this.about.target }, " true: ", isolate(truthText(row.truth, this.about)));
    const chip = h("span", null, h("span", { class: `chip ${toneOf(this.about, row.answer)}` }, isText ? isolate(row.answer) : number, share), truth);
    const compare = h(
      "button",
      {
        type: "button",
        class: "compare-button",
        tabindex: "-1", // keyboard users have the form below the sums
        title: "Compare",
        "aria-label": `Compare with case ${position}`,
        onclick: () => this.compare(position),
      },
      "\u21c4",
    );
    const open = (event) => {
      if (!event.target.closest("button")) this.open(position);
    };
    return h(
      "tr",
      { "data-position": position, onclick: open },
      h("td", null, pick),
      h("td", null, chip),
      h("td", { class: "values" }, values),
      h("td", null, compare),
    );
  }

  mark(position = this.selected) {
    this.selected = position;
    for (const row of byId("listing").querySelectorAll("tr[data-position]")) {
      const isSelected = Number(row.dataset.position) === position;
      row.classList.toggle("selected", isSelected);
      row.querySelector(".pick").toggleAttribute("aria-current", isSelected);
      if (isSelected) row.querySelector(".pick").setAttribute("aria-current", "true");
    }
    this.offerFocus(byId("listing").querySelector(".selected .pick") ?? byId("listing").querySelector(".pick"));
  }

  // The list is one stop of the Tab key; the arrow keys move inside.
  offerFocus(pick) {
    for (const other of byId("listing").querySelectorAll(".pick")) other.tabIndex = other === pick ? 0 : -1;
  }

  focus(index) {
    const picks = [...byId("listing").querySelectorAll(".pick")];
    const pick = picks[Math.max(0, Math.min(picks.length - 1, index))];
    this.offerFocus(pick);
    pick?.focus();
  }

  moveFocus(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const picks = [...byId("listing").querySelectorAll(".pick")];
    const now = picks.indexOf(document.activeElement);
    if (now === 0 && event.key === "ArrowUp") byId("search").focus();
    else this.focus(now + steps[event.key]);
    announce("");
  }
}

// The summary of all cases, or of those that match the search: computed by the server while this page asks for it.

const POOR = ["not_explained", "undecided", "partly_explained"];
export const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;
export const bar = (share, tone = "") => h("span", { class: `rail ${tone}` }, h("i", { style: { width: `${100 * share}%` } }));
export const number = (...content) => h("td", { class: "number" }, ...content);
const rate = (right, counts) => number(counts.some(Boolean) ? percent(right / counts.reduce((a, b) => a + b)) : "");
export const card = (title, ...content) => h("section", { class: "card" }, h("h2", null, title), ...content);

// The numbers of some cases, each of which opens with one click.
export function picks(positions, what, open) {
  const pick = (position) => h("button", { type: "button", class: "pick", onclick: () => open(position), "aria-label": `Open case ${position}` }, `#${position}`);
  return h("details", { class: "picks" }, h("summary", { "aria-label": `${plural(positions.length, "case")}: ${what}` }, plural(positions.length, "case")), positions.map((position) => [pick(position), " "]));
}

// A name that begins with # is that of a column of numbers.
export function table(caption, names, rows) {
  const heads = names.map((name) => h("th", { scope: "col", class: name.startsWith("#") ? "number" : null }, isolate(name.replace(/^#/, ""))));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", { class: "values-table plain" }, h("caption", { class: "visually-hidden" }, caption), h("thead", null, h("tr", null, heads)), h("tbody", null, rows)));
}

export class Overview {
  constructor(about, node, { open, onError }) {
    Object.assign(this, { about, node, open, onError });
  }

  stop() {
    this.pending?.abort();
    this.pending = null;
  }

  // Follows the summary until it is complete, and draws what is known each time.
  async load(search, settings) {
    this.stop();
    this.body = { search, ...settings };
    const pending = new AbortController();
    this.pending = pending;
    try {
      for await (const answer of follow("/v1/overview", this.body, pending.signal)) {
        if (pending !== this.pending) return;
        this.draw(answer);
        if (answer.is_done) announce("The summary is complete.");
      }
    } catch (error) {
      if (error.name !== "AbortError" && pending === this.pending) this.onError(error);
    }
  }

  draw(answer) {
    const { summary, outcomes, n_explained: n } = answer;
    fill(this.node, this.heading(answer), outcomes && answer.found ? this.outcomes(outcomes) : null,
      summary ? [this.attributes(summary, n), this.verdicts(summary, n, Boolean(outcomes?.numbers))] : null);
  }

  heading({ found, n_sampled: sampled, n_explained: explained, failed, progress, is_done: isDone, job }) {
    const { search } = this.body;
    const which = found > sampled ? `A random sample of ${count(sampled)} of ${plural(found, "case")}` : plural(found ?? 0, "case");
    const without = failed.length ? `; ${plural(failed.length, "case")} could not be explained (${failed.slice(0, 5).map((each) => `#${each}`).join(", ")}${failed.length > 5 ? " and others" : ""})` : "";
    const text = found === null ? "The model answers the cases that the search needs."
      : found === 0 ? "No case matches this search." : `${which}, ${count(explained)} explained${isDone ? "" : " so far"}${without}.`;
    const again = () => this.load(search, this.body);
    const halt = (event) => {
      this.stop();
      fill(event.target.parentNode, h("span", { class: "note" }, "Stopped. The summary is about the cases so far."), h("button", { type: "button", onclick: again }, "Continue"));
    };
    const download = async (format) => save(await (await call(`/v1/jobs/${job}/result?format=${format}`)).blob(), `explanations.${format}`);
    const file = (format, label) => h("button", { type: "button", id: `overview-${format}`, onclick: () => download(format).catch(this.onError) }, label);
    return h("section", { class: "card", id: "overview-head" },
      h("h1", null, search ? h("span", null, "Cases that match ", h("b", null, isolate(search))) : "All cases"),
      h("p", { class: "note", role: "status" }, text),
      isDone ? null : h("div", { class: "inline" }, h("progress", { max: "1", value: progress, "aria-label": "Progress of the summary" }), h("button", { type: "button", id: "overview-stop", onclick: halt }, "Stop")),
      explained ? h("div", { class: "downloads" }, file("csv", "CSV"), file("parquet", "Parquet")) : null);
  }

  outcomes({ n, target, decisions, mismatch, right, n_true: known, confusion, numbers, are_training: areTraining }) {
    const parts = [];
    const compared = right || numbers?.mean_absolute_error !== undefined;
    if (decisions) {
      parts.push(h("ul", { class: "shares" }, decisions.slice(0, 12).map(({ label, count: size }) => h("li", null, isolate(label), bar(size / n, `class ${toneOf(this.about, label)}`), h("b", null, percent(size / n))))));
    }
    if (numbers) {
      parts.push(h("p", null, "Mean answer ", h("b", null, shortNumber(numbers.mean))));
      if (numbers.mean_absolute_error !== undefined) parts.push(h("p", null, "Mean distance from ", isolate(target), " ", h("b", null, shortNumber(numbers.mean_absolute_error))));
    }
    if (mismatch) {
      const [truths, answers] = mismatch.map((labels) => labels.join(", "));
      parts.push(h("p", { class: "note" }, `The column ${target} holds ${truths}, but the model answers ${answers}, so that they cannot be compared.`));
    }
    if (right) {
      parts.push(h("p", null, h("b", null, percent(right.value)), ` of ${plural(known, "decision")} agree with the true outcomes, column `, isolate(target),
        h("span", { class: "note" }, ` (95% interval ${percent(right.low)} to ${percent(right.high)})`)));
    }
    if (confusion) {
      const rows = confusion.counts.map((row, i) => h("tr", null, h("th", { scope: "row" }, isolate(confusion.labels[i])),
        row.map((size, j) => h("td", { class: i === j ? "number right" : size ? "number wrong" : "number" }, count(size))), rate(row[i], row)));
      const decided = confusion.labels.map((_, j) => confusion.counts.map((row) => row[j]));
      const precision = h("tr", null, h("th", { scope: "row" }, "right of these (precision)"), decided.map((column, j) => rate(column[j], column)), h("td"));
      parts.push(table("Decisions by true outcomes", ["true outcome", ...confusion.labels.map((label) => `#decided ${label}`), "#right of these (recall)"], [...rows, precision]));
    }
    if (compared && areTraining) parts.push(h("p", { class: "note" }, "The model may have learned from these very cases. It can be wrong more often about new ones."));
    return card("What the model decides", ...parts);
  }

  attributes({ attributes, output, n_more: more }, n) {
    const [up, down] = output === null ? ["adds", "subtracts"] : [`raises ${output}`, `lowers ${output}`];
    const rows = attributes.map(({ name, n_rows: size, adds, typical_size: typical, texts, cases }) => h("tr", null,
      h("th", { scope: "row" }, isolate(name)), h("td", null, bar(size / n)), number(percent(size / n, 0)), number(percent((size / n) * adds, 0)), number(percent((size / n) * (1 - adds), 0)),
      number(shortNumber(typical, 2)), h("td", null, texts.slice(0, 1).map(({ text, count: times }) => [isolate(text), h("span", { class: "note" }, ` (${count(times)})`)]), picks(cases, name, this.open))));
    return card("Which facts matter?", h("p", { class: "note" }, "In how many of the explained cases a fact about the attribute is part of the sum, and in which direction."),
      table("How often each attribute matters", ["attribute", "", "#cases", `#${up}`, `#${down}`, "#typical size", "most often"], rows),
      more ? h("p", { class: "note" }, `${plural(more, "rarer attribute")} ${more === 1 ? "is" : "are"} not shown.`) : null);
  }

  verdicts({ verdicts, least_explained: least }, n, isNumber) {
    const shares = verdicts.map(({ code, text, count: size, cases }) => h("li", { class: code }, text, bar(size / n, "tone"), h("b", null, percent(size / n, 0)), picks(cases, text, this.open)));
    const link = (position) => h("button", { type: "button", class: "pick", onclick: () => this.open(position), "aria-label": `Open case ${position}` }, `#${position}`);
    const rows = least.filter(({ code }) => POOR.includes(code)).map(({ position, code, text, low }) => h("tr", null,
      h("th", { scope: "row" }, link(position)), h("td", { class: `verdict-cell ${code}` }, text), number(low === null ? "" : percent(Math.max(0, low), 0))));
    return card("How many cases do their facts explain?", h("ul", { class: "shares" }, shares), h("h3", null, "Least explained cases"),
      rows.length ? table("Least explained cases", ["case", "verdict", isNumber ? "#R2, at least" : "#copies with the facts that keep the decision, at least"], rows) : h("p", { class: "note" }, "None."));
  }
}
