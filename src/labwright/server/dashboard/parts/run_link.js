// A run by its name, where only its id is at hand: alone, or within a sentence.

import { useFetched } from "../fetched.js";
import { runAddress } from "../router.js";
import { knownRun } from "../store.js";
import { html } from "../ui.js";

const ID = /(run-[0-9a-z]{10})\b/;
const ALIKE = 10; // runs whose command has this id in it are found as well

export function RunLink({ id }) {
  const known = knownRun(id);
  const { data } = useFetched(!known && "runs", { q: id, archived: "all", limit: ALIKE }); // a list: a run that is not there is no error
  const run = known?.value ?? data?.find((one) => one.id === id);
  if (data && !run) return html`<code>${id}</code>`; // deleted, or of another project
  return html`<a href=${runAddress(id)} title=${id}>${run?.name ?? id}</a>`;
}

export const WithRuns = ({ words }) => words.split(ID).map((part, at) => (at % 2 ? html`<${RunLink} key=${at} id=${part} />` : part));
