// A sweep by its name, where only its id is at hand. From the list: one that is not there any more is no error.

import { useFetched } from "../fetched.js";
import { sweepAddress } from "../router.js";
import { html } from "../ui.js";

const AMONG = 200; // the newest of the project

export function SweepLink({ id }) {
  const { data } = useFetched("sweeps", { limit: AMONG });
  return html`<a href=${sweepAddress(id)} title=${id}>${data?.find((sweep) => sweep.id === id)?.name ?? id}</a>`;
}
