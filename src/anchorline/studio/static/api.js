// Calls the server that this page came from; the browser adds the session cookie.

export class ServerError extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

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

export const postJson = async (path, body, signal) => (await post(path, body, signal)).json();

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
