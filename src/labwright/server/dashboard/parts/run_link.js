// A run by its name, where only its id is at hand: alone, or within a sentence.

import { useFetched } from "../fetched.js";
import { runAddress } from "../router.js";
import { knownRun, putRun } from "../store.js";
import { batch, html, useMemo } from "../ui.js";

const ID = /(run-[0-9a-z]{10})\b/;
const HOLDERS = { status: "running,waiting,launching", limit: 1000 };
const ALIKE = 10; // runs whose command has this id in it are found as well

export function RunLink({ id }) {
  const known = knownRun(id);
  const { data } = useFetched(!known && "runs", { q: id, archived: "all", limit: ALIKE }); // a list: a run that is not there is no error
  const run = known?.value ?? data?.find((one) => one.id === id);
  if (data && !run) return html`<code>${id}</code>`; // deleted, or of another project
  return html`<a href=${runAddress(id)} title=${id}>${run?.name ?? id}</a>`;
}

const parts = (words) => words.split(ID); // every second one is an id

export const WithRuns = ({ words }) => parts(words).map((part, at) => (at % 2 ? html`<${RunLink} key=${at} id=${part} />` : part));

// For lists, where a link a line to each of the same few runs would be too much.
export const withNames = (words) => parts(words).map((part, at) => (at % 2 ? (knownRun(part)?.value.name ?? part) : part)).join("");

// Those that others wait for, so that they have names: all with one question, and none if they are at hand.
export function useHolders(reasons) {
  const isUnknown = reasons.some((words) => parts(words).some((part, at) => at % 2 && !knownRun(part)));
  const { data } = useFetched(isUnknown && "runs", HOLDERS);
  useMemo(() => batch(() => data?.forEach((run) => knownRun(run.id) || putRun(run))), [data]);
}
