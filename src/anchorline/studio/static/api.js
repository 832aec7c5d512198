// Calls to the server that this page came from; the cookie goes along by itself.

export class Trouble extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

async function call(path, options, tries = 3) {
  let response;
  try {
    response = await fetch(path, { ...options, cache: "no-store", credentials: "same-origin" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Trouble(0, "The server does not answer. Is it still running?");
  }
  if (response.ok) return response;
  if (response.status === 429 && tries > 0) {
    await pause(1000 * Math.min(5, Number(response.headers.get("Retry-After")) || 1));
    return call(path, options, tries - 1);
  }
  if (response.status === 401) location.reload(); // to the page that asks for the token
  let told = {};
  try {
    told = await response.json();
  } catch {
    // not a problem+json: say what is known
  }
  throw new Trouble(response.status, told.detail ?? `The server answered ${response.status}.`);
}

export const get = async (path, signal) => (await call(path, { signal })).json();

export async function post(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  return call(path, { method: "POST", headers, body: JSON.stringify(body), signal });
}

export const ask = async (path, body, signal) => (await post(path, body, signal)).json();

// The last few answers, and those under way: sliders go back and forth.
export class Memory {
  constructor(most = 200) {
    this.most = most;
    this.answers = new Map();
  }

  has(path, body) {
    return this.answers.get(path + JSON.stringify(body))?.done ?? null;
  }

  async ask(path, body, signal) {
    const key = path + JSON.stringify(body);
    const known = this.answers.get(key);
    if (known) return known.done ?? known.promise;
    const entry = { promise: ask(path, body, signal), done: null };
    this.answers.set(key, entry);
    if (this.answers.size > this.most) this.answers.delete(this.answers.keys().next().value);
    try {
      entry.done = await entry.promise;
    } catch (error) {
      this.answers.delete(key);
      throw error;
    }
    return entry.done;
  }
}
