// All curves of a run, by group, live.

import { get, isAborted, runPath } from "../api.js";
import { grouped } from "../series.js";
import { recall, remember } from "../storage.js";
import { onHint, resync } from "../store.js";
import { throttle } from "../throttle.js";
import { html, signal, useEffect, useMemo, useState } from "../ui.js";
import { Chart, PALETTE } from "./chart.js";

const REFRESH_MS = 1000;
const AT_ONCE = 30;
const MAX_POINTS = 1000;
const look = signal({ smoothing: 0, log: false, by: "step", system: false, ...recall("charts", {}) });

function setLook(changes) {
  look.value = { ...look.value, ...changes };
  remember("charts", look.value);
}

export function Charts({ run }) {
  const [limit, setLimit] = useState(AT_ONCE);
  const [series, setSeries] = useState(null);
  const [filter, setFilter] = useState("");
  const all = Object.keys(run.summary).sort();
  const own = all.filter((key) => !isSystem(key));
  const system = all.filter(isSystem);
  const found = own.filter((key) => key.toLowerCase().includes(filter.toLowerCase()));
  const keys = found.slice(0, limit);
  const { by, system: showsSystem } = look.value;
  useSeries(run.id, showsSystem ? [...keys, ...system] : keys, by, setSeries);
  const zoom = useMemo(() => signal(null), [run.id, by]);

  const grid = (members) => html`<div class="chart-grid">${members.map(
    (key) => html`<${Card} key=${key} name=${key} series=${series?.get(key)} zoom=${zoom} color=${PALETTE[all.indexOf(key) % PALETTE.length]} />`,
  )}</div>`;
  return html`<section class="charts" aria-label="Charts">
    <header class="section-head">
      <h2>Charts</h2>
      ${own.length > 8 && html`<input type="search" class="small-input" placeholder="Filter metrics" aria-label="Filter metrics"
        onInput=${(event) => setFilter(event.currentTarget.value)} />`}
      ${all.length > 0 && html`<${Controls} zoom=${zoom} />`}
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

function Card({ name, series, color, zoom }) {
  // Until the answer for the other axis is there, the old curve would be drawn on the wrong one.
  if (!series || series.by !== look.value.by) return html`<figure class="chart chart-empty" aria-busy="true"></figure>`;
  return html`<${Chart} name=${name} series=${series} look=${look.value} color=${color} zoom=${zoom} />`;
}

function Controls({ zoom }) {
  const { smoothing, log, by } = look.value;
  return html`<div class="controls">
    ${zoom.value && html`<button class="link" onClick=${() => (zoom.value = null)}>Reset zoom</button>`}
    <label>Smoothing <input type="range" min="0" max="0.99" step="0.01" value=${smoothing}
      onInput=${(event) => setLook({ smoothing: Number(event.currentTarget.value) })} />
      <output class="num">${smoothing.toFixed(2)}</output></label>
    <label><input type="checkbox" checked=${log} onChange=${(event) => setLook({ log: event.currentTarget.checked })} /> Log axis</label>
    <div class="segments" role="group" aria-label="Horizontal axis">${["step", "time"].map(
      (name) => html`<button key=${name} aria-pressed=${String(name === by)} onClick=${() => setLook({ by: name })}>${name}</button>`,
    )}</div>
  </div>`;
}

const NoMetrics = () => html`<p class="hint-line">No metrics so far. Log them in the script: ${" "}
  <code>import labwright; labwright.log({"loss": loss}, step=step)</code></p>`;
