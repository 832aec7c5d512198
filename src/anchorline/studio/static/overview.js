// The summary of all cases, or of those that match the search: computed by the server while this page asks for it.

import { pause, post, postJson, save } from "./api.js";
import { announce, fill, h, isolate } from "./dom.js";
import { count, percent, shortNumber } from "./format.js";

const PAUSE = 250; // milliseconds between two requests for an unfinished summary
const MAX_LATE = 4; // requests in a row that may run out of time
const POOR = ["not_explained", "undecided", "partly_explained"];
const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;
const bar = (share, tone = "") => h("span", { class: `rail ${tone}` }, h("i", { style: { width: `${100 * share}%` } }));
const number = (...content) => h("td", { class: "number" }, ...content);
const card = (title, ...content) => h("section", { class: "card" }, h("h2", null, title), ...content);

// A name that begins with # is that of a column of numbers.
function table(caption, names, rows) {
  const heads = names.map((name) => h("th", { scope: "col", class: name.startsWith("#") ? "number" : null }, isolate(name.replace(/^#/, ""))));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", { class: "values-table plain" }, h("caption", { class: "visually-hidden" }, caption), h("thead", null, h("tr", null, heads)), h("tbody", null, rows)));
}

export class Overview {
  constructor(node, { open, onError }) {
    Object.assign(this, { node, open, onError, turn: 0 });
  }

  stop() {
    this.turn += 1;
    this.pending?.abort();
  }

  // Asks until the summary is complete, and draws what is known each time.
  async load(search, settings) {
    this.stop();
    const ownTurn = this.turn;
    this.body = { search, ...settings };
    let late = 0; // a slow case may take a request's time; the server leaves it out, and the next request goes on
    while (ownTurn === this.turn) {
      this.pending = new AbortController();
      try {
        const answer = await postJson("/overview", this.body, this.pending.signal);
        if (ownTurn !== this.turn) return;
        late = 0;
        this.draw(answer);
        if (answer.is_done) return announce("The summary is complete.");
      } catch (error) {
        late += error.status === 503 ? 1 : MAX_LATE;
        if (late >= MAX_LATE) {
          if (ownTurn === this.turn) this.onError(error);
          return;
        }
      }
      await pause(PAUSE);
    }
  }

  draw(answer) {
    const { summary, outcomes, n_explained: n } = answer;
    fill(this.node, this.heading(answer), outcomes && answer.found ? this.outcomes(outcomes) : null,
      summary ? [this.attributes(summary, n), this.verdicts(summary, n, Boolean(outcomes?.numbers))] : null);
  }

  heading({ found, n_sampled: sampled, n_explained: explained, failed, progress, is_done: isDone }) {
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
    const download = async () => save(await (await post("/overview/table", this.body)).blob(), "explanations.csv");
    return h("section", { class: "card", id: "overview-head" },
      h("h1", null, search ? h("span", null, "Cases that match ", h("b", null, isolate(search))) : "All cases"),
      h("p", { class: "note", role: "status" }, text),
      isDone ? null : h("div", { class: "inline" }, h("progress", { max: "1", value: progress, "aria-label": "Progress of the summary" }), h("button", { type: "button", id: "overview-stop", onclick: halt }, "Stop")),
      explained ? h("div", { class: "downloads" }, h("button", { type: "button", id: "overview-csv", onclick: () => download().catch(this.onError) }, "CSV")) : null);
  }

  outcomes({ n, target, decisions, mismatch, right, n_true: known, confusion, numbers }) {
    const parts = [];
    if (decisions) {
      parts.push(h("ul", { class: "shares" }, decisions.slice(0, 12).map(({ label, count: size }) => h("li", null, isolate(label), bar(size / n), h("b", null, percent(size / n))))));
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
      parts.push(h("p", null, h("b", null, percent(right.value)), ` of ${plural(known, "decision")} agree with `, isolate(target),
        h("span", { class: "note" }, ` (95% interval ${percent(right.low)} to ${percent(right.high)})`)));
    }
    if (confusion) {
      const rows = confusion.counts.map((row, i) => h("tr", null, h("th", { scope: "row" }, isolate(confusion.labels[i])),
        row.map((size, j) => h("td", { class: i === j ? "number right" : size ? "number wrong" : "number" }, count(size)))));
      parts.push(table("Decisions by true outcomes", [`true ${target}`, ...confusion.labels.map((label) => `#decided ${label}`)], rows));
    }
    return card("What the model decides", ...parts);
  }

  attributes({ attributes, output, n_more: more }, n) {
    const [up, down] = output === null ? ["adds", "subtracts"] : [`raises ${output}`, `lowers ${output}`];
    const rows = attributes.map(({ name, n_rows: size, adds, typical_size: typical, texts }) => h("tr", null,
      h("th", { scope: "row" }, isolate(name)), h("td", null, bar(size / n)), number(percent(size / n, 0)), number(percent((size / n) * adds, 0)), number(percent((size / n) * (1 - adds), 0)),
      number(shortNumber(typical, 2)), h("td", null, texts.slice(0, 1).map(({ text, count: times }) => [isolate(text), h("span", { class: "note" }, ` (${count(times)})`)]))));
    return card("Which facts matter?", h("p", { class: "note" }, "In how many of the explained cases a fact about the attribute is part of the sum, and in which direction."),
      table("How often each attribute matters", ["attribute", "", "#cases", `#${up}`, `#${down}`, "#typical size", "most often"], rows),
      more ? h("p", { class: "note" }, `${plural(more, "rarer attribute")} ${more === 1 ? "is" : "are"} not shown.`) : null);
  }

  verdicts({ verdicts, least_explained: least }, n, isNumber) {
    const shares = verdicts.map(({ code, text, count: size }) => h("li", { class: code }, text, bar(size / n, "tone"), h("b", null, percent(size / n, 0))));
    const link = (position) => h("button", { type: "button", class: "pick", onclick: () => this.open(position), "aria-label": `Open case ${position}` }, `#${position}`);
    const rows = least.filter(({ code }) => POOR.includes(code)).map(({ position, code, text, low }) => h("tr", null,
      h("th", { scope: "row" }, link(position)), h("td", { class: `verdict-cell ${code}` }, text), number(low === null ? "" : percent(Math.max(0, low), 0))));
    return card("How many cases do their facts explain?", h("ul", { class: "shares" }, shares), h("h3", null, "Least explained cases"),
      rows.length ? table("Least explained cases", ["case", "verdict", isNumber ? "#R2, at least" : "#copies with the facts that keep the decision, at least"], rows) : h("p", { class: "note" }, "None."));
  }
}
