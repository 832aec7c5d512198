// The summary of all cases, or of those that match the search: computed by the server while this page asks for it.

import { post } from "./api.js";
import { announce, fill, h, isolate, s } from "./dom.js";
import { percent, shortNumber, valueText, withMinusSign } from "./format.js";

const PAUSE = 250; // milliseconds between two requests for an unfinished summary
const MAX_LATE = 4; // requests in a row that may run out of time
const json = async (path, body, signal) => (await post(path, body, signal)).json();
const count = (number) => number.toLocaleString("en");
const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;
const bar = (share, tone = "") => h("span", { class: `rail ${tone}` }, h("i", { style: { width: `${100 * share}%` } }));
const cell = (...content) => h("td", null, ...content);
const number = (...content) => h("td", { class: "number" }, ...content);
// A name that begins with # is that of a column of numbers.
const heads = (...names) => h("thead", null, h("tr", null, names.map((name) => h("th", { scope: "col", class: name.startsWith("#") ? "number" : null }, name.replace(/^#/, "")))));

function table(caption, head, rows) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", { class: `values-table plain${head.querySelectorAll("th").length < 4 ? " few" : ""}` }, h("caption", { class: "visually-hidden" }, caption), head, h("tbody", null, rows)));
}

function card(title, ...content) {
  return h("section", { class: "card" }, h("h2", null, title), ...content);
}

// A search that fits the table.
function example(columns) {
  const quoted = (text) => (/[\s"]/.test(text) ? `"${text}"` : text);
  const column = columns.find(({ kind, levels }) => kind === "categories" && levels.length) ?? columns.find(({ low }) => low !== undefined);
  if (!column) return null;
  return column.levels ? `${quoted(column.name)}=${quoted(column.levels[0])}` : `${quoted(column.name)}>${shortNumber((column.low + column.high) / 2, 3)}`;
}

export class Overview {
  constructor(about, node, { open, onError }) {
    Object.assign(this, { about, node, open, onError });
    this.turn = 0;
    this.answer = null;
    this.threshold = null;
    this.attribute = null;
    this.other = "";
  }

  stop() {
    this.turn += 1;
    this.pending?.abort();
  }

  // Asks until the summary is complete, and draws what is known each time.
  async load(search, settings) {
    this.stop();
    const ownTurn = this.turn;
    Object.assign(this, { search, settings, comparison: null });
    const body = { search, ...settings };
    const isNext = await this.repeat("/overview", body, ownTurn, (answer) => {
      this.answer = answer;
      this.draw();
      return answer.is_done;
    });
    if (isNext) announce("The summary is complete.");
  }

  async repeat(path, body, ownTurn, use) {
    let late = 0; // a slow case may take a request's time; the server leaves it out, and the next request goes on
    while (ownTurn === this.turn) {
      this.pending = new AbortController();
      try {
        const answer = await json(path, body, this.pending.signal);
        if (ownTurn !== this.turn) return false;
        if (use(answer)) return true;
        late = 0;
      } catch (error) {
        late += error.status === 503 ? 1 : MAX_LATE;
        if (late >= MAX_LATE) {
          if (ownTurn === this.turn) this.onError(error);
          return false;
        }
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
    return false;
  }

  draw() {
    const { summary, outcomes, rules } = this.answer;
    if (this.answer.found === 0) return fill(this.node, this.heading());
    return fill(this.node, this.heading(), outcomes ? this.outcomes(outcomes) : null,
      summary ? [this.facts(summary), this.effect(summary), this.trust(summary)] : null,
      rules ? this.rules(rules) : null, this.answer.is_done && summary ? this.compareCard() : null);
  }

  heading() {
    const { found, n_sampled: sampled, n_explained: explained, n_failed: failed, failed: named, progress, is_done: isDone } = this.answer;
    const cohort = this.search ? h("span", null, "Cases that match ", h("b", null, isolate(this.search))) : "All cases";
    const parts = [];
    const without = failed ? `; ${plural(failed, "case")} could not be explained (${named.map((each) => `#${each}`).join(", ")}${failed > named.length ? " and others" : ""})` : "";
    if (found !== null) {
      const which = found > sampled ? `A random sample of ${count(sampled)} of ${plural(found, "case")}` : plural(found, "case");
      parts.push(`${which}; ${count(explained)} explained so far${without}.`);
      if (isDone) parts[0] = `${which}, ${failed ? `${count(explained)}` : "each one"} explained${without}.`;
    }
    if (found === 0) parts[0] = "No case matches this search.";
    const bottom = isDone ? null : h("div", { class: "inline" },
      h("progress", { max: "1", value: progress, "aria-label": "Progress of the summary" }),
      h("button", { type: "button", id: "overview-stop", onclick: () => { this.stop(); this.halted(); } }, "Stop"));
    return h("section", { class: "card", id: "overview-head" }, h("p", { class: "kicker" }, "The whole model"), h("h1", null, cohort),
      h("p", { class: "note", role: "status" }, parts.join(" ") || "The model answers the cases that the search needs."), bottom);
  }

  halted() {
    const again = h("button", { type: "button", onclick: () => this.load(this.search, this.settings) }, "Continue");
    const note = this.node.querySelector("#overview-head .inline");
    if (note) fill(note, h("span", { class: "note" }, "Stopped. What is shown is about the cases so far."), again);
  }

  outcomes(outcomes) {
    const content = [];
    if (outcomes.decisions) content.push(this.decisions(outcomes));
    if (outcomes.mismatch) {
      const [truths, answers] = outcomes.mismatch.map((labels) => labels.join(", "));
      content.push(h("p", { class: "note" }, `The column ${outcomes.target} holds ${truths}, but the model answers ${answers}, so that they cannot be compared.`));
    }
    if (outcomes.right) {
      const { value, low, high } = outcomes.right;
      content.push(h("p", null, h("b", null, percent(value)), ` of ${plural(outcomes.n_true, "decision")} agree with `, isolate(outcomes.target),
        h("span", { class: "note" }, ` (95% interval ${percent(low)} to ${percent(high)})`)));
    }
    if (outcomes.confusion) content.push(this.confusion(outcomes));
    if (outcomes.numbers) content.push(...this.numbers(outcomes));
    const first = card(outcomes.numbers ? "What the model answers" : "What the model decides", ...content);
    const more = [first];
    if (outcomes.scores) more.push(this.thresholds(outcomes.scores));
    if (outcomes.calibration) more.push(this.calibration(outcomes));
    return more;
  }

  decisions({ decisions, n }) {
    const rows = decisions.slice(0, 12).map(({ label, count: size }) => h("li", null, h("span", null, isolate(label)), bar(size / n), h("b", null, percent(size / n))));
    return h("ul", { class: "shares" }, rows);
  }

  confusion({ confusion: { labels, counts }, target }) {
    const total = Math.max(1, counts.flat().reduce((sum, each) => sum + each, 0));
    const head = h("thead", null, h("tr", null, h("th", { scope: "col" }, `true ${target}`), labels.map((label) => h("th", { scope: "col", class: "number" }, "decided ", isolate(label)))));
    const rows = counts.map((row, i) => h("tr", null, h("th", { scope: "row" }, isolate(labels[i])),
      row.map((size, j) => h("td", { class: i === j ? "number right" : size ? "number wrong" : "number" }, count(size), h("span", { class: "note" }, ` ${percent(size / total, 0)}`)))));
    return table("Decisions by true outcomes", head, rows);
  }

  numbers({ numbers, target }) {
    const nodes = [h("p", null, "Mean answer ", h("b", null, shortNumber(numbers.mean)))];
    if (numbers.tenths) {
      nodes.push(h("p", null, "Mean distance from ", isolate(target), " ", h("b", null, shortNumber(numbers.mean_absolute_error)),
        h("span", { class: "note" }, ` (root of the mean square ${shortNumber(numbers.root_mean_square_error)})`)));
      const rows = numbers.tenths.map((tenth) => h("tr", null, number(shortNumber(tenth.predicted)), number(shortNumber(tenth.actual)), number(count(tenth.n))));
      nodes.push(table("Predicted and true numbers by tenths of the prediction", heads("#mean prediction", `#mean ${target}`, "#cases"), rows));
    } else if (target) nodes.push(h("p", { class: "note" }, `The column ${target} holds no numbers.`));
    return nodes;
  }

  // Moving the slider counts again from the histogram; the server is not asked.
  thresholds(scores) {
    const total = scores.all.reduce((sum, each) => sum + each, 0);
    const above = (counts, step) => counts.slice(step).reduce((sum, each) => sum + each, 0);
    const text = h("div", { "aria-live": "polite" });
    const show = (step) => {
      this.threshold = step;
      const n = above(scores.all, step);
      const parts = [h("p", null, h("b", null, count(n)), ` of ${plural(total, "case")} (${percent(n / Math.max(1, total))}) have P(`, isolate(scores.label), `) of at least ${step}%.`)];
      if (scores.positive) {
        const [hits, alarms] = [above(scores.positive, step), above(scores.negative, step)];
        const misses = above(scores.positive, 0) - hits;
        const rejected = above(scores.negative, 0) - alarms;
        const known = hits + misses + alarms + rejected;
        parts.push(h("p", null, h("b", null, count(misses + alarms)), ` of ${count(known)} would be errors: `,
          h("b", null, count(alarms)), " decided ", isolate(scores.label), " although it is not true, and ", h("b", null, count(misses)), " the other way round."));
      }
      fill(text, parts);
      output.textContent = `${step}%`;
    };
    const output = h("output", { for: "threshold" });
    const start = this.threshold ?? 50;
    const slider = h("input", { id: "threshold", type: "range", min: "0", max: "100", step: "1", value: start, oninput: (event) => show(Number(event.target.value)) });
    show(start);
    return card("What if the threshold were different?", h("p", { class: "note" }, "Decide ", isolate(scores.label), " from this probability on. The model itself does not change."),
      h("div", { class: "sliders one" }, h("div", null, h("label", { for: "threshold" }, "Threshold ", output), slider)), text);
  }

  calibration({ calibration, scores, target }) {
    const [width, height, left, bottom] = [440, 260, 44, 34];
    const x = (share) => left + share * (width - left - 24);
    const y = (share) => height - bottom - share * (height - bottom - 12);
    const ticks = [0, 0.25, 0.5, 0.75, 1];
    const marks = calibration.map(({ score, n, found }) => s("g", null,
      s("line", { class: "limits", x1: x(score), x2: x(score), y1: y(found.low), y2: y(found.high) }),
      s("circle", { cx: x(score), cy: y(found.value), r: 4 }, s("title", null, `${plural(n, "case")}: predicted ${percent(score)}, true ${percent(found.value)}`))));
    const picture = s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Predicted probability and share of true outcomes" },
      ticks.map((tick) => [s("line", { class: "grid", x1: left, x2: width - 12, y1: y(tick), y2: y(tick) }), s("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, percent(tick, 0)),
        s("text", { x: x(tick), y: height - 12, "text-anchor": "middle" }, percent(tick, 0))]),
      s("line", { class: "ideal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }), marks);
    const caption = h("figcaption", { class: "note" }, "Across: predicted P(", isolate(scores.label), "). Up: share of these cases in which ", isolate(target), " is ", isolate(scores.label),
      ". On the dashed line both are equal. All bars hold together with 95% confidence.");
    const rows = calibration.map(({ score, n, found }) => h("tr", null, number(percent(score)), number(percent(found.value)), number(`${percent(found.low)} to ${percent(found.high)}`), number(count(n))));
    const details = h("details", null, h("summary", null, "As a table"), table("Calibration", heads("#predicted", "#true", "#limits", "#cases"), rows));
    return card("Do the probabilities mean what they say?", h("figure", { class: "curve calibration" }, picture, caption), details);
  }

  directions(output) {
    return output === null ? ["for its own output", "against it"] : [`raises ${output}`, `lowers ${output}`];
  }

  facts({ facts, output, n_more_facts: more }) {
    const n = Math.max(1, this.answer.n_explained);
    const [up, down] = this.directions(output);
    const rows = facts.map((fact) => h("tr", null,
      h("th", { scope: "row" }, h("button", { type: "button", class: "pick", onclick: () => this.choose(fact.key), "aria-label": `Effect of ${fact.name}` }, isolate(fact.name))),
      cell(h("span", { class: "twin" }, bar((fact.n_rows / n) * fact.adds), bar((fact.n_rows / n) * (1 - fact.adds), "minus"))),
      number(percent(fact.n_rows / n, 0)), number(percent((fact.n_rows / n) * fact.adds, 0)), number(percent((fact.n_rows / n) * (1 - fact.adds), 0)),
      number(shortNumber(fact.typical_size, 2)), cell(fact.texts.slice(0, 1).map(({ text, count: size }) => [isolate(text), h("span", { class: "note" }, ` (${count(size)})`)]))));
    const rest = more ? h("p", { class: "note" }, `${plural(more, "rarer attribute")} ${more === 1 ? "is" : "are"} not shown.`) : null;
    return card("Which facts decide?", h("p", { class: "note" }, "In how many of the explained cases a fact about the attribute is part of the sum, and in which direction."),
      table("How often each attribute decides", heads("attribute", "direction", "#cases", `#${up}`, `#${down}`, "#typical size", "most often"), rows), rest);
  }

  choose(key) {
    this.attribute = key;
    this.draw();
    this.node.querySelector("#effect")?.scrollIntoView({ block: "nearest" });
  }

  effect({ facts, output }) {
    const usable = facts.filter((fact) => fact.is_column);
    const fact = usable.find(({ key }) => key === this.attribute) ?? usable[0];
    if (!fact) return null;
    const choice = h("select", { id: "effect-choice", onchange: (event) => this.choose(event.target.value) },
      usable.map(({ key, name }) => h("option", { value: key, selected: key === fact.key }, name)));
    const column = this.about.columns.find(({ name }) => name === fact.key);
    const picture = column?.kind === "numbers" ? this.scatter(fact) : this.levels(fact);
    const what = output === null ? "the explained output" : output;
    return h("section", { class: "card", id: "effect" }, h("h2", null, "What does one attribute do?"),
      h("p", { class: "inline" }, h("label", { for: "effect-choice" }, "Attribute"), choice), picture,
      h("p", { class: "note" }, "What the facts about ", isolate(fact.name), " add to ", isolate(what), ` in each of ${plural(fact.points.length, "case")} in which they are part of the sum.`));
  }

  scatter(fact) {
    const points = fact.points.filter(([, , value]) => typeof value === "number" && Number.isFinite(value));
    if (!points.length) return this.levels(fact);
    const span = (values) => { const [low, high] = [Math.min(...values), Math.max(...values)]; return high > low ? [low, high] : [low - 1, high + 1]; };
    const [first, last] = span(points.map(([, , value]) => value));
    const [low, high] = span([0, ...points.map(([, size]) => size)]);
    const [width, height, bottom] = [560, 240, 30];
    const left = Math.max(60, 16 + 9 * Math.max(...[low, high].map((tick) => shortNumber(tick, 2).length)));
    const x = (value) => left + ((value - first) / (last - first)) * (width - left - 14);
    const y = (size) => height - bottom - ((size - low) / (high - low)) * (height - bottom - 14);
    const dots = points.map(([position, size, value]) => s("circle", { class: size < 0 ? "minus" : "plus", cx: x(value), cy: y(size), r: 4 },
      s("title", null, `Case ${position}: ${shortNumber(value)} adds ${shortNumber(size, 2)}`)));
    return h("figure", { class: "curve effect" }, s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `What ${fact.name} adds, by its value` },
      [low, 0, high].map((tick) => [s("line", { class: "grid", x1: left, x2: width - 14, y1: y(tick), y2: y(tick) }), s("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, shortNumber(tick, 2))]),
      [first, last].map((tick, i) => s("text", { x: x(tick), y: height - 8, "text-anchor": i ? "end" : "start" }, shortNumber(tick))), dots));
  }

  levels(fact) {
    const groups = new Map();
    for (const [, size, value] of fact.points) groups.set(valueText(value), [...(groups.get(valueText(value)) ?? []), size]);
    const rows = [...groups].sort((one, other) => other[1].length - one[1].length).slice(0, 15).map(([value, sizes]) => {
      const mean = sizes.reduce((sum, each) => sum + each, 0) / sizes.length;
      return h("tr", null, h("th", { scope: "row" }, isolate(value)), number(withMinusSign(shortNumber(mean, 2))), number(shortNumber(Math.min(...sizes), 2)), number(shortNumber(Math.max(...sizes), 2)), number(count(sizes.length)));
    });
    return table(`What ${fact.name} adds`, heads("value", "#mean", "#least", "#most", "#cases"), rows);
  }

  trust({ verdicts, least_trustworthy: worst }) {
    const n = Math.max(1, this.answer.n_explained);
    const shares = verdicts.map(({ name, title, count: size }) => h("li", { class: name }, h("span", null, title), bar(size / n, "tone"), h("b", null, percent(size / n, 0))));
    const doubtful = worst.filter(({ verdict }) => !["trustworthy", "robust"].includes(verdict));
    const rows = doubtful.map(({ position, verdict, title, change }) => h("tr", null, h("th", { scope: "row" }, this.link(position)),
      h("td", { class: `verdict-cell ${verdict}` }, title), number(change === null ? "" : percent(change, 0))));
    return card("How far can these explanations be trusted?", h("ul", { class: "shares" }, shares), h("h3", null, "Least trustworthy cases"),
      !rows.length ? h("p", { class: "note" }, "None: every explanation is trustworthy, or its answer robust.") : table("Least trustworthy cases", heads("case", "verdict", "#may change although the facts hold"), rows));
  }

  link(position) {
    return h("button", { type: "button", class: "pick", onclick: () => this.open(position), "aria-label": `Open case ${position}` }, `#${position}`);
  }

  rules({ headline, proof, rules }) {
    const rows = rules.map((rule) => h("tr", null, h("th", { scope: "row" }, isolate(rule.decision)),
      cell(rule.facts.map((fact, i) => [i ? " and " : "", h("b", { class: "fact-mark" }, isolate(fact))])),
      number(count(rule.covered)), number(percent(rule.agreement, 0)), number(rule.stability ? `${percent(rule.stability.low)} to ${percent(rule.stability.high)}` : ""), cell(this.link(rule.position))));
    const hint = "\u201cAgree\u201d is the share of the cases with these facts that have the decision. \u201cStays\u201d is how often the decision of the case named last stays while its facts hold, measured on fresh neighbors; all limits hold together with 95% confidence.";
    return h("section", { class: "card", id: "rules" }, h("h2", null, "The fewest rules"), h("p", null, headline, " ", h("span", { class: "note" }, proof)),
      rules.length ? [table("Rules", heads("decision", "if", "#cases", "#agree", "#stays", "stated by"), rows), h("p", { class: "note" }, hint)] : null);
  }

  compareCard() {
    const input = h("input", { id: "overview-other", type: "search", maxlength: "200", value: this.other, autocomplete: "off", spellcheck: "false", placeholder: example(this.about.columns) });
    const form = h("form", { class: "inline", onsubmit: (event) => { event.preventDefault(); this.compare(input.value.trim()); } },
      h("label", { for: "overview-other" }, "Compare with the cases that match"), input, h("button", { type: "submit" }, "Compare"));
    return h("section", { class: "card", id: "overview-compare" }, h("h2", null, "How do two groups differ?"), form, h("div", { class: "result" }, this.comparison ? this.differences() : null));
  }

  async compare(other) {
    this.stop();
    this.other = other;
    await this.repeat("/overview/compare", { search: this.search, other, ...this.settings }, this.turn, (answer) => {
      this.comparison = answer;
      fill(this.node.querySelector("#overview-compare .result"), this.differences()); // the card may have been drawn anew
      return answer.is_done;
    });
  }

  differences() {
    const { comparison, first, second, is_done: isDone } = this.comparison;
    if (!isDone) return h("progress", { max: "1", value: (first.progress + second.progress) / 2, "aria-label": "Progress of the comparison" });
    if (!comparison) return h("p", { class: "note" }, "One of the groups has no case that can be explained.");
    const [up, down] = this.directions(comparison.output);
    const names = { decision: (name) => ["decision ", isolate(name)], verdict: (name) => [name], adds: (name) => [isolate(name), ` ${up}`], lowers: (name) => [isolate(name), ` ${down}`] };
    // Rounded so that the limits are never too narrow, and so that a clear difference never seems to include zero.
    const points = ({ low, high, is_clear: isClear }) => {
      const digits = isClear && Math.floor(100 * low) * Math.ceil(100 * high) <= 0 ? 1 : 0;
      const unit = 100 * 10 ** digits;
      return [Math.floor(unit * low), Math.ceil(unit * high)].map((limit) => withMinusSign((limit / 10 ** digits).toFixed(digits))).join(" to ");
    };
    const rows = comparison.differences.map((each) => h("tr", { class: each.is_clear ? "differs" : "" }, h("th", { scope: "row" }, names[each.kind](each.name)),
      number(percent(each.first, 0)), number(percent(each.second, 0)), number(points(each)), cell(each.is_clear ? "clear" : "may be chance")));
    return [h("p", null, `${plural(comparison.n_clear, "share")} of ${count(comparison.n_compared)} ${comparison.n_clear === 1 ? "differs" : "differ"} clearly between ${count(comparison.n_first)} and ${plural(comparison.n_second, "case")}.`),
      table("Differences of the two groups", heads("share of cases", "#these", "#the others", "#difference in points", ""), rows),
      h("p", { class: "note" }, `All ${count(comparison.n_compared)} intervals hold together with ${percent(comparison.confidence, 0)} confidence; the cases count as a random sample.`)];
  }
}
