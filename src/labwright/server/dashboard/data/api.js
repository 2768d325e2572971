// Calls to the server. URLs are relative to the page, so that a tunnel to another port works.

import { clearToken, token } from "./session.js";

export class ApiError extends Error {
  constructor(status, code, message, hint = "") {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
  }
}

export const address = (path) => new URL(path, document.baseURI);
export const isAborted = (error) => error?.name === "AbortError";

async function call(method, path, { query = {}, body, abort, key, firstBytes } = {}) {
  const url = address(path);
  for (const [name, value] of Object.entries(query)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== undefined && item !== null && item !== "") url.searchParams.append(name, item);
    }
  }
  const used = requireToken();
  const headers = { "X-Auth-Token": used };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers["Idempotency-Key"] = key;
  if (firstBytes) headers.Range = `bytes=0-${firstBytes - 1}`;
  const response = await reach(url, {
    method,
    headers,
    signal: abort,
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (response.ok) return response;
  throw await errorFrom(response, used);
}

// Throw if there is no token: a page may still make a request while the user signs out.
export function requireToken() {
  if (!token.value) throw new ApiError(401, "signed_out", "You are signed out.");
  return token.value;
}

async function reach(url, options) {
  try {
    return await fetch(url, options);
  } catch (error) {
    if (isAborted(error)) throw error;
    throw new ApiError(0, "gone", "The server does not respond.", "Start it with `labwright up`.");
  }
}

export async function errorFrom(response, used) {
  if (response.status === 401) tokenRefused(used);
  const { error } = await response.json().catch(() => ({}));
  return new ApiError(
    response.status,
    error?.code,
    error?.message ?? `The server returned status ${response.status}.`,
    error?.hint,
  );
}

// A late response to an old token must not sign out a user who has signed in again.
function tokenRefused(used) {
  if (used === token.value) clearToken("The token is invalid or has expired.");
}

export const get = async (path, query, abort) => (await call("GET", path, { query, abort })).json();
export const post = async (path, body, key) => (await call("POST", path, { body, key })).json();
// For calls whose response is a stream that is read elsewhere: resolve once the server has accepted it.
export const send = async (path, body, key) => (await call("POST", path, { body, key })).body.cancel();
// An Idempotency-Key. crypto.randomUUID is missing on plain HTTP to another machine.
export const newKey = () =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
export const patch = async (path, body) => (await call("PATCH", path, { body })).json();
export const put = async (path, body) => {
  const response = await call("PUT", path, { body });
  return response.status === 204 ? null : response.json(); // storing a secret returns nothing
};
export const remove = (path) => call("DELETE", path);
export const getBlob = async (path, query, abort) => (await call("GET", path, { query, abort })).blob();
export const getFirstBytes = async (path, firstBytes, abort) => (await call("GET", path, { firstBytes, abort })).blob();

export async function getPage(path, query, abort) {
  const response = await call("GET", path, { query, abort });
  return { items: await response.json(), next: response.headers.get("X-Next-Cursor") };
}

// Return what is wrong with a token, or "" if the server accepts it.
export async function tokenProblem(text) {
  if (!/^[\x21-\x7e]+$/.test(text)) return "This is not a token.";
  try {
    const response = await reach(address("whoami"), { headers: { "X-Auth-Token": text } });
    if (response.ok) return "";
    return response.status === 401 ? "This token is invalid or has expired." : (await errorFrom(response)).message;
  } catch (error) {
    return `${error.message} ${error.hint ?? ""}`;
  }
}

export const runPath = (id, rest = "") => `runs/${encodeURIComponent(id)}${rest}`;

// Save a blob as a file in the browser's download folder.
export function saveBlob(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name.replaceAll(/[/\\:*?"<>|]/g, "_");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
