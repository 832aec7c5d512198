// The page: its state is stored in the address, and its sentences and numbers are the server's.

import { ServerError, announce, byId, call, count, fill, get, h, isolate, keepFile, percent, post, postJson, save, truthText, valueText } from "./base.js";
import { Changes, Reasons, Rule, WhatIf } from "./cards.js";
import { Cases, Overview, toneOf } from "./cases.js";
import { NewCase } from "./form.js";
import { compare, drawContent, waterfall } from "./sum.js";
import { Models, Whole } from "./whole.js";

const SETTLE_TIME = 250; // milliseconds without a change of a slider before the page asks
const SIGNS = { explained: "\u2713", partly_explained: "\u2248", not_explained: "\u2717", robust: "\u2261", undecided: "?" };
const HINTS = {
  texts: ["Take out words, or type another text.", "The fewest words that turn the decision when they are taken out.", "The fewest words with which altered copies keep the model\u2019s answer."],
  images: ["Hide regions.", "The fewest regions that turn the decision when they are hidden.", "The fewest regions with which altered copies keep the model\u2019s answer."],
};

// The state of the page, stored in the address, so that a link reproduces the view.

const parseWhole = (text, fallback) => (/^\d{1,15}$/.test(text ?? "") ? Number(text) : fallback);

function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const isValues = (content) => content !== null && typeof content === "object" && !Array.isArray(content);

function readAddress() {
  const query = new URLSearchParams(location.search);
  const sigma = Number(query.get("sigma") ?? NaN);
  const [edits, broken, ownRow] = ["edits", "broken", "row"].map((name) => parseJson(query.get(name)));
  return {
    case: parseWhole(query.get("case"), 0),
    k: parseWhole(query.get("k"), null),
    sigma: Number.isFinite(sigma) && sigma >= 0 && sigma <= 4 ? sigma : 1,
    view: ["all", "models"].includes(query.get("view")) ? query.get("view") : "case",
    compare: parseWhole(query.get("compare"), null),
    output: query.get("output"),
    row: isValues(ownRow) ? ownRow : null,
    search: query.get("search") ?? "",
    sort: ["high", "low"].includes(query.get("sort")) ? query.get("sort") : "position",
    edits: isValues(edits) ? edits : {},
    broken: Array.isArray(broken) ? broken.filter((name) => typeof name === "string") : [],
  };
}

// Addresses have a limited length, so that the values of a very long case are not part of it.
const MAX_ROW = 24_000;
const isTooLong = (state) => state.row !== null && encodeURIComponent(JSON.stringify(state.row)).length > MAX_ROW;

function address(state) {
  const query = new URLSearchParams({ case: state.case, k: state.k, sigma: state.sigma });
  if (about.file) query.set("file", about.file.digest);
  if (state.view !== "case") query.set("view", state.view);
  if (state.compare !== null) query.set("compare", state.compare);
  if (state.output !== null) query.set("output", state.output);
  if (state.row !== null && !isTooLong(state)) query.set("row", JSON.stringify(state.row));
  if (state.search) query.set("search", state.search);
  if (state.sort !== "position") query.set("sort", state.sort);
  if (Object.keys(state.edits).length) query.set("edits", JSON.stringify(state.edits));
  if (state.broken.length) query.set("broken", JSON.stringify(state.broken));
  return `${location.pathname}?${query}`;
}

function writeAddress(state, isNewCase) {
  const url = address(state);
  if (url === location.pathname + location.search) return;
  if (isNewCase) history.pushState(null, "", url);
  else history.replaceState(null, "", url);
}

const state = readAddress();
const wantedFile = new URLSearchParams(location.search).get("file");
let about, cases, newCase, whatIf, rule, reasons, changes, overview, whole, models;
let current = { view: null, row: null, answer: null };
let turn = 0; // counts the opened cases, so that answers for an earlier case are ignored
let settling = null;

const isNewCase = () => state.row !== null;
const caseName = () => (isNewCase() ? "new" : String(state.case));
const classChoice = () => (state.output === null ? {} : { output: state.output });
const settings = () => ({ k: state.k, sigma: state.sigma, ...classChoice() });
const shownRow = () => (isNewCase() ? state.row : state.case);
const request = (row = shownRow()) => ({ row, ...settings() });
const isNarrow = () => matchMedia("(max-width: 60rem)").matches;

function showError(error) {
  if (error?.name === "AbortError") return;
  const isServerError = error instanceof ServerError;
  byId("error").textContent = isServerError ? error.message : "This page has failed. Reload it to continue.";
  byId("error").hidden = false;
  byId("main").removeAttribute("aria-busy");
  if (!current.view) byId("case-view").hidden = true; // nothing to show yet
  if (!isServerError) throw error;
}

const showErrors = (promise) => promise.catch(showError);

function drawView(view) {
  const { row } = current;
  const truth = row?.truth === undefined || row.truth === null ? "" : ` (true outcome: ${truthText(row.truth, about)})`;
  byId("case-view").hidden = state.view !== "case";
  byId("kicker").textContent = isNewCase() ? "New case" : `Case ${state.case}${truth}`;
  fill(byId("headline"), isolate(view.headline));
  byId("headline").className = toneOf(about, view.headline);
  fill(byId("small"), isolate(view.small));
  document.title = `Case ${caseName()} - anchorline Studio`;
  const hasSum = view.sum.facts.length > 0;
  const follows = hasSum || view.same ? ":" : ".";
  fill(byId("verdict"), h("span", { "aria-hidden": "true" }, `${SIGNS[view.verdict.code]} `), isolate(view.verdict.text), follows);
  byId("verdict").className = `verdict ${view.verdict.code}`;
  const ends = hasSum && !view.same.endsWith(".") ? ":" : "";
  fill(byId("same"), view.same ? h("p", null, isolate(view.same), ends) : null);
  drawContent(byId("content"), view);
  fill(byId("waterfall"), hasSum ? waterfall(view) : null);
  const bars = view.meters.map(meter);
  fill(byId("evidence"), view.evidence.map((text) => h("p", null, isolate(text))));
  const folded = [view.rows, hasSum ? view.caption : ""].filter(Boolean).map((text) => h("p", { class: "note" }, isolate(text)));
  fill(byId("shares"), bars.length ? h("div", { class: "meters", "aria-hidden": "true" }, bars) : null, folded);
  byId("legend").textContent = view.legend;
  byId("k-name").textContent = `How many ${view.facts}`;
  byId("answer").classList.remove("stale");
  const names = about.columns.map(({ label }, i) => h("div", null, h("dt", null, isolate(label)), h("dd", null, isolate(valueText(row?.values[i] ?? null)))));
  fill(byId("values"), h("dl", { class: "values-list" }, row ? names : null));
  fill(byId("details"), view.details.map(({ kind, text }) => h("p", { class: kind }, isolate(text))));
}

// The bars repeat numbers of the sentence above them; a line across the end shows the limits.
function meter({ text, value, low, high }) {
  const [from, width] = [low, high - low].map((share) => `${100 * share}%`);
  const limits = high > low ? h("u", { style: { left: from, width } }) : null;
  return h("div", { class: "meter" }, h("span", null, text), h("span", { class: "rail" }, h("i", { style: { width: `${100 * value}%` } }), limits));
}

function drawSliders() {
  byId("k").value = state.k;
  byId("sigma").value = state.sigma;
  byId("k-text").textContent = `at most ${state.k}`;
  byId("k").setAttribute("aria-valuetext", `at most ${state.k}`);
  const share = percent(2 / (1 + Math.exp(state.sigma)) / (about.is_table ? 1 : 2), 0);
  byId("sigma-text").textContent = about.is_table ? `a copy has ${share} of its values replaced` : `a copy lacks ${share}`;
  byId("sigma").setAttribute("aria-valuetext", byId("sigma-text").textContent);
}

async function openCase(position, isNew = true, ownRow = null) {
  const ownTurn = ++turn;
  state.case = position;
  if (isNew) Object.assign(state, { edits: {}, broken: [], row: ownRow });
  current.accepted = null;
  writeAddress(state, isNew);
  byId("main").setAttribute("aria-busy", "true");
  byId("error").hidden = true;
  cases.mark(isNewCase() ? null : position);
  const loaded = isNewCase() ? loadNewRow() : loadRow(position);
  const [view, row] = await Promise.all([postJson("/page/explain", request()), loaded]);
  if (ownTurn !== turn) return;
  Object.assign(current, { view, row });
  newCase.open(state.row);
  whatIf.forget();
  drawView(view);
  drawSliders();
  rule.open(view);
  changes.open(view);
  showErrors(reasons.open(view));
  byId("main").removeAttribute("aria-busy");
  announce(`${view.decision} ${view.verdict.text}.`);
  showErrors(loadWhatIf());
  showErrors(loadComparison());
}

// The model's answer to a case that is not in the table, in the form of a row of the table.
async function loadNewRow() {
  const answer = await postJson("/v1/what-if", request());
  return { values: about.columns.map(({ name }) => answer.row[name]), answer: answer.answer };
}

const rows = new Map();
async function loadRow(position) {
  if (!rows.has(position)) {
    const page = await get(`/v1/rows?${new URLSearchParams({ search: `#${position}`, limit: 1 })}`);
    rows.set(position, page.rows[0] ?? null);
  }
  return rows.get(position);
}

async function loadWhatIf() {
  const ownTurn = turn;
  const body = { ...request(), edits: state.edits, broken: state.broken };
  const isStale = () => ownTurn !== turn || body.edits !== state.edits || body.broken !== state.broken;
  whatIf.draw(state, current.view, current.answer, true);
  try {
    const answer = await postJson("/v1/what-if", body);
    if (isStale()) return;
    Object.assign(current, { answer, accepted: { edits: body.edits, broken: body.broken } });
    whatIf.draw(state, current.view, answer, false);
  } catch (error) {
    if (isStale()) return;
    if (error.status !== 422 || !(Object.keys(body.edits).length || body.broken.length)) throw error;
    await refuseEdits(error);
  }
}

// Returns to the last changes that were accepted. What was typed stays in its field, with the reason beside it.
async function refuseEdits(error) {
  if (!whatIf.refuse(error.message)) showError(error);
  const accepted = current.accepted ?? { edits: {}, broken: [] };
  Object.assign(state, accepted.edits === state.edits ? { edits: {}, broken: [] } : accepted);
  writeAddress(state);
  await loadWhatIf();
}

async function loadComparison() {
  byId("compare-none").hidden = state.compare === null;
  byId("other").value = state.compare ?? "";
  const columns = about.columns.map((column) => column.label);
  if (state.compare === null) return compare(byId("compare"), columns, null, null);
  const position = state.compare;
  // Both sums explain the same class, so that they can share a scale.
  const output = current.view.class === null ? {} : { output: current.view.class };
  const [view, row] = await Promise.all([postJson("/page/explain", { ...request(position), ...output }), loadRow(position)]);
  if (position !== state.compare) return undefined;
  const first = { view: current.view, row: current.row, name: caseName() };
  return compare(byId("compare"), columns, first, { view, row, name: position });
}

function setCompare(position) {
  byId("error").hidden = true;
  state.compare = position;
  writeAddress(state);
  showErrors(loadComparison().then(() => position !== null && byId("compare-title").scrollIntoView({ block: "start" })));
}

function setOutput(output) {
  state.output = output;
  writeAddress(state);
  cases.restart();
  showErrors(openCase(state.case, false));
}

function move(change) {
  Object.assign(state, change);
  writeAddress(state);
  drawSliders();
  byId("answer").classList.add("stale");
  clearTimeout(settling);
  settling = setTimeout(() => {
    if (cases.asksKnown) cases.restart();
    showErrors(openCase(state.case, false));
  }, SETTLE_TIME);
}

const fileName = () => (isNewCase() ? "new-case" : `case-${state.case}`);

async function download(format) {
  const name = fileName();
  if (format === "json") return save(new Blob([current.view.json], { type: "application/json" }), `${name}.json`);
  const beside = rule.answer ? { holds: rule.answer.holds } : {}; // the report has what the page shows
  return save(await (await post("/page/report", { ...request(), ...beside })).blob(), `${name}.html`);
}

// Prints the letter alone: the texts of its reasons with their codes.
function printLetter({ letter }) {
  const texts = letter.map(({ code, text }) => h("li", null, isolate(text), code ? h("small", null, " (", isolate(code), ")") : null));
  fill(byId("letter"), h("p", null, isNewCase() ? "New case" : `Case ${state.case}`), h("h1", null, "Main reasons for the decision"), h("ol", null, texts));
  document.body.classList.add("letter");
  window.addEventListener("afterprint", () => document.body.classList.remove("letter"), { once: true });
  window.print();
}

const saveRecord = (kind) => ({ json }) => save(new Blob([json], { type: "application/json" }), `${fileName()}-${kind}.json`);

async function copyLink() {
  const link = location.origin + address(state);
  const says = (text) => {
    byId("copy-link").textContent = text;
    setTimeout(() => { byId("copy-link").textContent = "Copy link"; }, 1500);
  };
  if (isTooLong(state)) return says("Too long");
  try {
    await navigator.clipboard.writeText(link);
    announce("The link was copied. It contains no token.");
    return says("Copied");
  } catch {
    return window.prompt("The link to this view:", link);
  }
}

// The page shows one case, or the summary of all cases that match the search.
function showView(view, isUserAction = true) {
  state.view = (view === "all" && about.is_table) || (view === "models" && about.previous) ? view : "case";
  const [isAll, isModels] = ["all", "models"].map((name) => state.view === name);
  byId("overview").hidden = byId("whole").hidden = !isAll;
  byId("models").hidden = !isModels;
  byId("case-view").hidden = isAll || isModels;
  byId("view-models").textContent = isModels ? "One case" : "Compare models";
  byId("view").textContent = isAll ? "One case" : "All cases";
  if (isUserAction) writeAddress(state, true);
  if (!isAll) {
    whole.stop();
    if (isModels) {
      document.title = "Compare models - anchorline Studio";
      models.show();
    } else models.stop();
    return overview.stop();
  }
  document.title = "All cases - anchorline Studio";
  whole.load(cases.search, settings());
  return overview.load(cases.search, settings());
}

function setTheme(selected) {
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const name = selected ?? localStorage.getItem("anchorline-theme") ?? system;
  document.documentElement.dataset.theme = name;
  byId("theme").textContent = name === "dark" ? "Light" : "Dark";
  byId("theme").setAttribute("aria-label", name === "dark" ? "Use light colors" : "Use dark colors");
  if (selected) localStorage.setItem("anchorline-theme", selected);
}

function wire() {
  const on = (id, event, action) => byId(id).addEventListener(event, action);
  on("k", "input", (event) => move({ k: Number(event.target.value) }));
  on("sigma", "input", (event) => move({ sigma: Number(event.target.value) }));
  on("view", "click", () => {
    showView(state.view === "all" ? "case" : "all");
    if (state.view === "case" && !current.view) showErrors(openCase(state.case, false));
    byId("main").focus();
  });
  on("view-models", "click", () => {
    showView(state.view === "models" ? "case" : "models");
    if (state.view === "case" && !current.view) showErrors(openCase(state.case, false));
    byId("main").focus();
  });
  on("new-open", "click", () => showErrors(startNew()));
  on("copy-link", "click", () => showErrors(copyLink()));
  on("file-open", "click", () => byId("file").click());
  on("file", "change", () => showErrors(openFile()));
  on("file-close", "click", () => showErrors(closeFile()));
  on("theme", "click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  for (const button of document.querySelectorAll("[data-format]")) {
    button.addEventListener("click", () => showErrors(download(button.dataset.format)));
  }
  on("compare-form", "submit", (event) => {
    event.preventDefault();
    if (byId("other").value !== "") setCompare(Number(byId("other").value));
  });
  on("compare-none", "click", () => setCompare(null));
  on("output", "change", (event) => setOutput(event.target.value || null));
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      byId("drawer").open = true;
      byId("search").focus();
    }
  });
  window.addEventListener("popstate", () => {
    Object.assign(state, readAddress());
    state.k ??= about.k;
    current.answer = null;
    showView(state.view, false);
    if (state.view === "case") showErrors(openCase(state.case, false));
  });
}

function edit(edits, broken) {
  byId("error").hidden = true;
  Object.assign(state, { edits, broken });
  writeAddress(state);
  showErrors(loadWhatIf());
}

function open(position) {
  if (isNarrow()) {
    byId("drawer").open = false;
    byId("main").focus();
  }
  current.answer = null;
  if (state.view !== "case") showView("case", false);
  showErrors(openCase(position));
}

function openNew(values) {
  current.answer = null;
  byId("main").scrollIntoView({ block: "start" });
  showErrors(openCase(state.case, true, values));
}

// Opens the form with the values of the shown case, or with those of the first one.
async function startNew() {
  const row = isNewCase() || (current.row && state.view === "case") ? current.row : await loadRow(0);
  if (state.view !== "case") showView("case", false);
  openNew(Object.fromEntries(about.columns.map(({ name }, i) => [name, row.values[i]])));
}

// Opens a file in place of the cases of the list, for this tab only; what is wrong with it is said beside the button.
async function openFile() {
  const [file] = byId("file").files;
  byId("file").value = ""; // so that the same file can be chosen again
  const says = (text) => { byId("file-error").textContent = text; };
  if (!file) return undefined;
  if (file.size > about.upload) return says(`${file.name} has ${count(file.size)} bytes; the maximum is ${count(about.upload)}.`);
  byId("file-open").disabled = true;
  says("");
  try {
    const headers = { "Content-Type": "application/octet-stream" };
    const answer = await (await call(`/v1/file?${new URLSearchParams({ name: file.name.slice(-200) })}`, { method: "POST", headers, body: file })).json();
    keepFile(answer.id);
    return location.assign(answer.digest === wantedFile ? location.href : location.pathname);
  } catch (error) {
    return says(error.message);
  } finally {
    byId("file-open").disabled = false;
  }
}

async function closeFile() {
  await call("/v1/file", { method: "DELETE" });
  keepFile(null);
  location.assign(location.pathname);
}

// A link to a case of a file is about nothing if that file is not open.
function describeFile() {
  const { file, upload } = about;
  if (wantedFile && wantedFile !== file?.digest) {
    Object.assign(state, { case: 0, compare: null, row: null, edits: {}, broken: [] });
    about.notices.unshift("This link is about a case of a file that is not open here. Open the file to see the case.");
  }
  byId("file-open").hidden = !upload || Boolean(file);
  byId("file-open").title = `CSV or Parquet, at most ${count(upload / 1e6)} MB. It stays in memory, and only you see it.`;
  byId("file-close").hidden = byId("file-note").hidden = !file;
  byId("file-note").textContent = "Only you see these cases. They are forgotten after 30 minutes without a request.";
}

async function find(path, wishes, signal) {
  byId("error").hidden = true;
  try {
    return await postJson(path, { row: shownRow(), ...classChoice(), ...wishes }, signal);
  } catch (error) {
    showError(error);
    return null;
  }
}

function describe() {
  describeFile();
  const ofFile = about.file ? ` of ${about.file.name}` : "";
  byId("model").textContent = `${about.name} \u00b7 ${count(about.rows)} case${about.rows === 1 ? "" : "s"}${ofFile}`;
  byId("drawer-title").textContent = `Cases${ofFile} (${count(about.rows)})`;
  const hide = () => {
    byId("notices").hidden = true;
    byId("main").focus();
  };
  byId("notices").append(...about.notices.map((text) => h("p", {}, text)), h("button", { type: "button", onclick: hide }, "Hide"));
  byId("notices").hidden = !about.notices.length;
  byId("values-card").hidden = !about.is_table; // a text or image is shown above
  byId("view").hidden = !about.is_table;
  byId("view-models").hidden = !about.previous;
  byId("new-open").hidden = about.columns[0].kind === "images";
  if (!about.is_table) [byId("what-if-hint").textContent, byId("changes-hint").textContent, byId("rule-hint").textContent] = HINTS[about.columns[0].kind];
  if (isNarrow()) byId("drawer").open = false;
  byId("k").max = about.most_k;
  state.k = Math.min(Math.max(1, state.k ?? about.k), about.most_k);
  byId("class-choice").hidden = !(about.classes?.length > 1) || about.explains !== null;
  if (byId("class-choice").hidden) state.output = null;
  else {
    const option = (label) => h("option", { value: label, selected: label === state.output }, label);
    byId("output").append(h("option", { value: "" }, "the model\u2019s decision"), ...about.classes.map(option));
  }
  byId("search").value = state.search;
  byId("sort").value = state.sort;
}

async function start() {
  setTheme();
  about = await get("/page/about").catch((error) => {
    if (error.status !== 404) throw error;
    return get("/page/about"); // the file of this tab is closed
  });
  describe();
  cases = new Cases(about, { open, compare: setCompare, onError: showError, settings });
  cases.changed = () => {
    const isOther = state.search !== cases.search;
    Object.assign(state, { search: cases.search, sort: byId("sort").value });
    writeAddress(state);
    if (state.view === "all" && isOther) showView("all", false);
  };
  overview = new Overview(about, byId("overview"), { open, onError: showError });
  newCase = new NewCase(about, byId("new-card"), byId("new"), { onExplain: openNew, onClose: () => showErrors(openCase(state.case)), onTyped: () => { byId("kicker").textContent = "New case, before your last changes"; }, onError: showError });
  whole = new Whole(about, byId("whole"), { open, onError: showError });
  models = new Models(about, byId("models"), { open, onError: showError, download: saveRecord("comparison") });
  whatIf = new WhatIf(about, byId("what-if"), { onChange: edit, onExplain: openNew });
  const apply = (edits, names) => {
    if (about.is_table) edit(edits, []);
    else edit({}, names);
    byId("what-if-title").scrollIntoView({ block: "nearest" });
  };
  changes = new Changes(about, byId("changes"), { search: (wishes) => find("/page/changes", wishes), apply });
  rule = new Rule(byId("rule"), {
    search: (wishes, signal) => find("/page/rule", { sigma: state.sigma, ...wishes }, signal),
    meter,
    download: saveRecord("rule"),
  });
  reasons = new Reasons(byId("reasons-card"), byId("reasons"), {
    search: (signal) => postJson("/page/reasons", { row: shownRow() }, signal),
    print: printLetter,
    download: saveRecord("reasons"),
  });
  wire();
  showView(state.view, false);
  await Promise.all([cases.load(), state.view === "case" ? openCase(state.case, false) : null]);
}

showErrors(start());
