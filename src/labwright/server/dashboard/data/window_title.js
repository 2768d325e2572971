// The tab's title and icon show how many runs are active and how many failed while the window was hidden.

import { withoutBidi } from "../format.js";
import { effect, signal, useEffect } from "../view.js";
import { get } from "./api.js";
import { project, token } from "./session.js";
import { onEvent, reloads } from "./store.js";
import { throttle } from "./throttle.js";

const COUNT_MS = 2000;
const BROKEN = new Set(["failed", "lost"]);
const page = signal("");
export const counts = signal(null); // number of runs by status; null until the server responds
const unseen = signal(0); // failures since this window was last visible

const refreshCounts = throttle(async () => {
  try {
    counts.value = (await get("cluster")).run_summary;
  } catch {
    // The server is unreachable; retried on reconnect.
  }
}, COUNT_MS);

export function useTitle(text) {
  useEffect(() => {
    page.value = text;
  }, [text]);
}

export function startTitle() {
  onEvent((event) => {
    if (event.type === "run.status" && document.hidden && BROKEN.has(event.data.to)) unseen.value += 1;
    if (event.type === "run.status" || event.type === "run.created" || event.type === "run.deleted") refreshCounts();
  });
  document.addEventListener("visibilitychange", () => !document.hidden && (unseen.value = 0));
  effect(() => {
    if (reloads.value) refreshCounts();
  });
  effect(() => {
    const { running = 0 } = (token.value && counts.value) || {};
    const news = [unseen.value && `${unseen.value} failed`, running && `${running} running`].filter(Boolean);
    document.title = withoutBidi([...news, page.value, project.value, "Labwright"].filter(Boolean).join(" · "));
    setIcon(unseen.value ? "favicon-failed" : running ? "favicon-running" : "favicon");
  });
}

function setIcon(name) {
  const link = document.querySelector("link[rel=icon]");
  const href = `assets/${name}.svg`;
  if (link.getAttribute("href") !== href) link.setAttribute("href", href);
}
