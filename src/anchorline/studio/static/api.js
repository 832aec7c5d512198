// Calls the server that this page came from; the browser adds the session cookie.

export class ServerError extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function call(path, options, tries = 3) {
  let response;
  try {
    response = await fetch(`.${path}`, { ...options, cache: "no-store", credentials: "same-origin" });
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
  throw new ServerError(response.status, problem.detail ?? `The server answered with status ${response.status}.`);
}

export const get = async (path, signal) => (await call(path, { signal })).json();

export async function post(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  return call(path, { method: "POST", headers, body: JSON.stringify(body), signal });
}

const postJson = async (path, body, signal) => (await post(path, body, signal)).json();

// Caches the last answers and the pending requests, because sliders move back and forth.
export class AnswerCache {
  constructor(maxEntries = 200) {
    this.maxEntries = maxEntries;
    this.answers = new Map();
  }

  // Returns the answer if it has arrived, else null.
  peek(path, body) {
    return this.answers.get(path + JSON.stringify(body))?.answer ?? null;
  }

  async post(path, body, signal) {
    const key = path + JSON.stringify(body);
    const stored = this.answers.get(key);
    if (stored) return stored.answer ?? stored.promise;
    const entry = { promise: postJson(path, body, signal), answer: null };
    this.answers.set(key, entry);
    if (this.answers.size > this.maxEntries) this.answers.delete(this.answers.keys().next().value);
    try {
      entry.answer = await entry.promise;
    } catch (error) {
      this.answers.delete(key);
      throw error;
    }
    return entry.answer;
  }
}
