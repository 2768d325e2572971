// All curves of a run, by group, live.

import { get, isAborted, runPath } from "../api.js";
import { route } from "../router.js";
import { grouped } from "../series.js";
import { onHint, resync } from "../store.js";
import { throttle } from "../throttle.js";
import { html, signal, useEffect, useMemo, useState } from "../ui.js";
import { Chart } from "./chart.js";
import { ChartControls, look, setLook } from "./chart_look.js";
import { colorAt } from "./plot.js";

const REFRESH_MS = 1000;
const AT_ONCE = 30;
const MAX_POINTS = 1000;
export function Charts({ run }) {
  const asked = route.value.query.get("metric") ?? ""; // one that somebody came for
  const [more, setLimit] = useState(AT_ONCE);
  const [series, setSeries] = useState(null);
  const [filter, setFilter] = useState("");
  const all = Object.keys(run.summary).sort();
  const own = all.filter((key) => !isSystem(key));
  const system = all.filter(isSystem);
  const found = own.filter((key) => key.toLowerCase().includes(filter.toLowerCase()));
  const limit = Math.max(more, found.indexOf(asked) + 1);
  const keys = found.slice(0, limit);
  const { by } = look.value;
  const showsSystem = look.value.system || isSystem(asked);
  useSeries(run.id, showsSystem ? [...keys, ...system] : keys, by, setSeries);
  const zoom = useMemo(() => signal(null), [run.id, by]);

  const grid = (members) => html`<div class="chart-grid">${members.map(
    (key) => html`<${Card} key="${key} ${key === asked}" name=${key} isAsked=${key === asked} series=${series?.get(key)} zoom=${zoom} color=${colorAt(all.indexOf(key))} runId=${run.id} />`,
  )}</div>`;
  return html`<section class="charts" aria-label="Charts">
    <header class="section-head">
      <h2>Charts</h2>
      ${own.length > 8 && html`<input type="search" class="small-input" placeholder="Filter metrics" aria-label="Filter metrics"
        onInput=${(event) => setFilter(event.currentTarget.value)} />`}
      ${all.length > 0 && html`<${ChartControls} zoom=${zoom} />`}
    </header>
    ${!own.length && html`<${NoMetrics} />`}
    ${grouped(keys).map(([group, members]) => html`<div class="chart-group" key=${group}>
      ${group && html`<h3>${group}</h3>`}
      ${grid(members)}
    </div>`)}
    ${found.length > limit && html`<button onClick=${() => setLimit(limit + AT_ONCE)}>
      Show ${Math.min(AT_ONCE, found.length - limit)} more of ${found.length - limit}</button>`}
    ${system.length > 0 && html`<details class="chart-group" open=${showsSystem} onToggle=${(event) => setLook({ system: event.currentTarget.open })}>
      <summary>CPU, memory, disk and GPU</summary>
      ${showsSystem && grid(system)}
    </details>`}
  </section>`;
}

const isSystem = (key) => key.startsWith("system/"); // what the machine did, sampled for every run

// Fetched again when the server hints that the run's series grew, at most once a second.
function useSeries(runId, keys, by, setSeries) {
  const wanted = JSON.stringify(keys);
  const again = resync.value;
  useEffect(() => {
    if (!keys.length) return undefined;
    const abort = new AbortController();
    const refresh = throttle(async () => {
      try {
        const found = await get(runPath(runId, "/metrics"), { keys, x: by, max_points: MAX_POINTS }, abort.signal);
        setSeries(new Map(found.series.map((one) => [one.key, { ...one, by }])));
      } catch (error) {
        if (!isAborted(error) && error.status) throw error;
      }
    }, REFRESH_MS);
    refresh();
    const unsubscribe = onHint("metrics", runId, refresh);
    return () => {
      unsubscribe();
      refresh.cancel();
      abort.abort();
    };
  }, [runId, wanted, by, again]);
}

function Card({ runId, name, series, color, zoom, isAsked }) {
  const [isBig, setBig] = useState(isAsked);
  useEffect(() => {
    if (isAsked && series) document.querySelector(".chart-big").scrollIntoView({ block: "center" });
  }, [Boolean(series)]);
  // Until the answer for the other axis is there, the old curve would be drawn on the wrong one.
  if (!series || series.by !== look.value.by) return html`<figure class="chart chart-empty" aria-busy="true"></figure>`;
  return html`<${Chart} runId=${runId} name=${name} series=${series} look=${look.value} color=${color} zoom=${zoom} isBig=${isBig} onBig=${() => setBig(!isBig)} />`;
}

const NoMetrics = () => html`<p class="hint-line">No metrics so far. Log them in the script: ${" "}
  <code>import labwright; labwright.log({"loss": loss}, step=step)</code></p>`;
