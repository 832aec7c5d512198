// What every card of the page uses: elements, printed values, and calls of the server.

// Builds DOM elements. Text from data is always inserted as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function applyStyles(node, settings) {
  for (const [name, value] of Object.entries(settings)) node.style.setProperty(name, value);
}

function assemble(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") applyStyles(node, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

export const h = (tag, attributes, ...children) => assemble(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) => assemble(document.createElementNS(SVG, tag), attributes, children);
export const byId = (id) => document.getElementById(id);
export const fill = (node, ...children) => node.replaceChildren(...children.flat(Infinity).filter(Boolean));

// Isolates text from data, so that its writing direction does not affect the text around it.
export const isolate = (text) => h("bdi", null, text);

export function announce(text) {
  byId("status").textContent = text;
}

// Formats numbers and dates for people. The numbers of an explanation come printed from the server.

export const withMinusSign = (number) => String(number).replace("-", "\u2212");
export const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)}%`;
export const count = (number) => number.toLocaleString("en");

export function shortNumber(value, digits = 4) {
  if (!Number.isFinite(value)) return "";
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-4)) return withMinusSign(value.toPrecision(Math.min(3, digits)));
  return withMinusSign(String(Number(value.toPrecision(digits))));
}

// A true outcome; of a number, as many digits as a reader compares.
export const truthText = (text, about) => (about.classes || text.trim() === "" || !Number.isFinite(Number(text)) ? text : shortNumber(Number(text), 6));

// Shortens a timestamp: a time of midnight, zero seconds and zero microseconds are omitted, as in the facts.
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$/;
const dateText = (text) =>
  TIMESTAMP.test(text) ? text.replace(".000000", "").replace(/:00$/, "").replace(/T00:00$/, "").replace("T", " ") : text;

export const valueText = (value) => (value === null ? "missing" : dateText(String(value)));

// Calls the server that this page came from; the browser adds the session cookie.

export class ServerError extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

// The file of cases that this tab has opened: the server knows it by a secret, which is in no address.
const FILE = `anchorline-file ${location.pathname}`;
export const openedFile = () => sessionStorage.getItem(FILE);
export const keepFile = (id) => (id === null ? sessionStorage.removeItem(FILE) : sessionStorage.setItem(FILE, id));

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

export async function call(path, options = {}, tries = 3) {
  let response;
  const headers = { ...options.headers, ...(openedFile() ? { "X-Anchorline-File": openedFile() } : {}) };
  try {
    response = await fetch(`.${path}`, { ...options, headers, cache: "no-store", credentials: "same-origin" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError(0, "The server does not answer. Is it still running?");
  }
  if (response.ok) return response;
  if (response.status === 429 && tries > 0) {
    await pause(1000 * Math.min(5, Number(response.headers.get("Retry-After")) || 1));
    return call(path, options, tries - 1);
  }
  if (response.status === 401) location.reload(); // the server then sends the page that asks for the token
  let problem = {};
  try {
    problem = await response.json();
  } catch {
    // The body is not problem+json, so only the status is known.
  }
  if (problem.type === "urn:anchorline:file-closed") {
    keepFile(null);
    problem.detail += " Reload the page, and open it again.";
  }
  throw new ServerError(response.status, problem.detail ?? `The server answered with status ${response.status}.`);
}

export const get = async (path, signal) => (await call(path, { signal })).json();

export async function post(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  return call(path, { method: "POST", headers, body: JSON.stringify(body), signal });
}

export const postJson = async (path, body, signal) => (await post(path, body, signal)).json();

// Begins a job and yields its result as it grows; a problem in it is thrown like that of any other answer. The
// server cancels the job if this ends early or the page is closed.
const jobs = new Set();
const cancel = (id) => call(`/v1/jobs/${id}`, { method: "DELETE", keepalive: true }).catch(() => {});
addEventListener("pagehide", () => jobs.forEach(cancel));

export async function* follow(path, body, signal) {
  const { id } = await postJson(path, body, signal);
  jobs.add(id);
  let isRunning = true;
  try {
    const reader = (await call(`/v1/jobs/${id}/events`, { signal })).body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) throw new ServerError(0, "The server has closed the connection. Is it still running?");
      const parts = (text + value).split("\n\n");
      text = parts.pop();
      for (const part of parts) {
        const { state, result, problem } = JSON.parse(part.split("\ndata: ")[1]);
        isRunning = state === "running";
        if (problem) throw new ServerError(problem.status, problem.detail);
        if (state === "canceled") throw new ServerError(410, "The server has canceled this, because the page did not follow it.");
        if (result) yield { ...result, job: id };
        if (!isRunning) return;
      }
    }
  } finally {
    jobs.delete(id);
    if (isRunning) cancel(id);
  }
}

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
