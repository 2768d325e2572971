// What a piece of evidence shows, in words, and where it can be looked at.

import { number } from "./format.js";
import { compareAddress, metricAddress, runAddress, sweepAddress } from "./router.js";

const MOST_VALUES = 6;

const ADDRESS = {
  run: ({ run_id: id }) => runAddress(id),
  metric: ({ run_id: id, key }) => metricAddress(id, key),
  log: ({ run_id: id }) => runAddress(id),
  group: ({ run_ids: ids }) => compareAddress(ids),
  ranking: ({ run_ids: ids }) => compareAddress(ids),
  difference: ({ first, second }) => compareAddress([...first, ...second]),
  sweep: ({ sweep_id: id }) => sweepAddress(id),
  configuration: ({ sweep_id: id }) => `${sweepAddress(id)}?tab=configurations`,
  runs: () => "#/runs",
  cluster: () => "#/cluster",
};

export function sourceOf({ kind, source, values, key, about, settled }) {
  const subject = [key, kind === "runs" || kind === "cluster" ? kind : about?.[1] ?? about?.[0]].filter(Boolean).join(" of ");
  const shown = Object.entries(values ?? {}).slice(0, MOST_VALUES).map(([name, value]) => `${name} ${number(value)}`).join(", ");
  const words = [subject || kind, shown, settled ? "" : "still changing"].filter(Boolean).join(" · ");
  return { words, href: Object.hasOwn(ADDRESS, kind) ? ADDRESS[kind](source) : "" };
}
