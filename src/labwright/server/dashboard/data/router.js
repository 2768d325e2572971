// The current page: `#/runs/ID?q=…`. After the #, because the API owns the paths.

import { signal } from "../view.js";
import { takeTokenFromAddress } from "./session.js";

export const route = signal(parse(location.hash));

function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [page, ...rest] = path.split("/");
  return {
    page: page || "home",
    id: rest.length ? decodePart(rest.join("/")) : "",
    query: new URLSearchParams(query),
  };
}

function decodePart(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function startRouter() {
  addEventListener("hashchange", () => {
    takeTokenFromAddress(); // the printed link, opened in this tab
    route.value = parse(location.hash);
  });
  route.value = parse(location.hash);
}

export const runAddress = (id) => `#/runs/${encodeURIComponent(id)}`;
export const metricAddress = (id, key) => `${runAddress(id)}?metric=${encodeURIComponent(key)}`;
export const sweepAddress = (id) => `#/sweeps/${encodeURIComponent(id)}`;
export const planAddress = (id) => `#/plans/${encodeURIComponent(id)}`;
export const wildAddress = (id) => `#/wild/${encodeURIComponent(id)}`;
export const chatAddress = (id) => `#/chat/${encodeURIComponent(id)}`;
export const askAddress = (id, metric = "") =>
  `#/chat?${new URLSearchParams({ about: id, ...(metric && { metric }) })}`;
export const skillAddress = (id) => `#/skills/${encodeURIComponent(id)}`;
export const compareAddress = (ids) => `#/compare?runs=${ids.map(encodeURIComponent).join(",")}`;

export function go(hash) {
  location.hash = hash;
}

// Change the query in the address without adding a history entry.
export function setQuery(changes) {
  const query = new URLSearchParams(route.value.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const { page, id } = route.value;
  if (page === "home") return;
  const text = query.toString();
  const hash = `#/${page}${id ? `/${encodeURIComponent(id)}` : ""}${text ? `?${text}` : ""}`;
  history.replaceState(null, "", hash);
  route.value = parse(hash);
}
