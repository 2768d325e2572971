// The charts of a run, by group, live.

import { number } from "../format.js";
import { html, signal, useEffect, useMemo, useRef, useState } from "../view.js";
import { get, getBlob, isAborted, runPath, saveBlob } from "../data/api.js";
import { useKeys } from "../data/keyboard.js";
import { askAddress, route } from "../data/router.js";
import { knownRun, onHint, resync } from "../data/store.js";
import { throttle } from "../data/throttle.js";
import { Icon } from "../ui/icon.js";
import { Menu } from "../ui/menu.js";
import { showError } from "../ui/toast.js";
import { ChartControls, ChartNote, chartOptions, positionText, setChartOptions } from "../charts/chart_options.js";
import { colorAt, Plot, TALL } from "../charts/plot.js";
import { savePicture } from "../charts/plot_picture.js";
import { columnsOf, grouped } from "../charts/series.js";

const REFRESH_MS = 1000;
const AT_ONCE = 30;
const MAX_POINTS = 1000;

export function Charts({ run }) {
  const linked = route.value.query.get("metric") ?? ""; // opened by a link to this metric
  const [more, setLimit] = useState(AT_ONCE);
  const [series, setSeries] = useState(null);
  const [filter, setFilter] = useState("");
  const all = Object.keys(run.summary).sort();
  const own = all.filter((key) => !isSystem(key));
  const system = all.filter(isSystem);
  const found = own.filter((key) => key.toLowerCase().includes(filter.toLowerCase()));
  const limit = Math.max(more, found.indexOf(linked) + 1);
  const keys = found.slice(0, limit);
  const { by } = chartOptions.value;
  const showsSystem = chartOptions.value.system || isSystem(linked);
  useSeries(run.id, showsSystem ? [...keys, ...system] : keys, by, setSeries);
  const zoom = useMemo(() => signal(null), [run.id, by]);

  const grid = (members) =>
    html`<div class="chart-grid">
      ${members.map(
        (key) =>
          html`<${Card}
            key="${key} ${key === linked}"
            name=${key}
            isLinked=${key === linked}
            series=${series?.get(key)}
            zoom=${zoom}
            color=${colorAt(all.indexOf(key))}
            runId=${run.id}
          />`,
      )}
    </div>`;
  return html`<section class="charts" aria-label="Charts">
    <header class="section-head">
      <h2>Charts</h2>
      ${
        own.length > 8 &&
        html`<input
          type="search"
          class="small-input"
          placeholder="Filter metrics"
          aria-label="Filter metrics"
          onInput=${(event) => setFilter(event.currentTarget.value)}
        />`
      }
      ${all.length > 0 && html`<${ChartControls} zoom=${zoom} />`}
    </header>
    ${!own.length && html`<${NoMetrics} />`}
    ${grouped(keys).map(
      ([group, members]) =>
        html`<div class="chart-group" key=${group}>
          ${group && html`<h3>${group}</h3>`}
          ${grid(members)}
        </div>`,
    )}
    ${
      found.length > limit &&
      html`<button onClick=${() => setLimit(limit + AT_ONCE)}>
        Show ${Math.min(AT_ONCE, found.length - limit)} more of ${found.length - limit}
      </button>`
    }
    ${
      system.length > 0 &&
      html`<details
        class="chart-group"
        open=${showsSystem}
        onToggle=${(event) => setChartOptions({ system: event.currentTarget.open })}
      >
        <summary>CPU, memory, disk and GPU</summary>
        ${showsSystem && grid(system)}
      </details>`
    }
  </section>`;
}

const isSystem = (key) => key.startsWith("system/"); // machine metrics, sampled for every run

// Fetch the series, and again when the run logs more, at most once a second.
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

function Card({ runId, name, series, color, zoom, isLinked }) {
  const [isBig, setBig] = useState(isLinked);
  useEffect(() => {
    if (isLinked && series) document.querySelector(".chart-big").scrollIntoView({ block: "center" });
  }, [Boolean(series)]);
  // Do not draw the old series on a new axis.
  if (!series || series.by !== chartOptions.value.by)
    return html`<figure class="chart chart-empty" aria-busy="true"></figure>`;
  return html`<${Chart}
    runId=${runId}
    name=${name}
    series=${series}
    options=${chartOptions.value}
    color=${color}
    zoom=${zoom}
    isBig=${isBig}
    onBig=${() => setBig(!isBig)}
  />`;
}

const NoMetrics = () =>
  html`<p class="hint-line">
    No metrics yet. Log them in the script:${" "}
    <code>${`import labwright; labwright.log({"loss": loss}, step=step)`}</code>
  </p>`;

// One metric of one run.
function Chart({ runId, name, series, options, color, zoom, isBig, onBig }) {
  const plot = useRef(null);
  useKeys({ ...(isBig && { Escape: onBig }) });
  const [hover, setHover] = useState(null);
  const data = useMemo(() => columnsOf(series, options), [series, options]);
  const isEmpty = data.columns[1].every((value) => value === null);
  const lines = [{ color, width: 1, alpha: options.smoothing ? 0.25 : 0, dots: false }, { color }];
  const saveTable = () =>
    getBlob(runPath(runId, "/metrics/export"), { keys: [name] }).then(
      (blob) => saveBlob(blob, `${runId} ${name}.csv`),
      showError,
    );
  const saveChart = () =>
    savePicture(plot.current, `${runId} ${name}.png`, `${name} by ${options.by}`, [
      { name: `${knownRun(runId).value.name} (${runId})`, color },
    ]);

  return html`<figure class="chart ${isBig ? "chart-big" : ""}" aria-label="Chart of ${name}">
    <figcaption>
      <span class="chart-name" title=${name}>
        ${name}
      </span>
      <${Reading} series=${series} data=${data} hover=${hover} options=${options} />
      <span class="chart-tools">
        <button class="bare" aria-label=${isBig ? "Smaller" : "Larger"} aria-pressed=${String(isBig)} onClick=${onBig}>
          <${Icon} name="maximize-2" size="12" />
        </button>
        <${Menu} label=${html`<span class="hidden">Download ${name}</span>`} icon="download">
          ${(close) =>
            html`<button class="menu-item" onClick=${() => (close(), saveChart())}>
              Image (PNG)
            </button>
            <button class="menu-item" onClick=${() => (close(), saveTable())}>
              All points (CSV)
            </button>`}
        </${Menu}>
        <a
          class="chart-ask"
          href=${askAddress(runId, name)}
          aria-label="Ask about ${name}"
          title="Ask about this chart"
        >
          <${Icon} name="message-square" size="12" />
        </a>
      </span>
    </figcaption>
    <${Plot}
      key=${isEmpty}
      columns=${data.columns}
      lines=${lines}
      axis=${options.by}
      logX=${options.logX}
      logY=${options.log}
      zoom=${zoom}
      height=${isBig ? TALL : undefined}
      label="${name}: last ${number(series.last)} at step ${series.last_step}"
      onHover=${setHover}
      onPlot=${(made) => (plot.current = made)}
    />
    <${ChartNote} data=${data} isEmpty=${isEmpty} />
  </figure>`;
}

// The value under the pointer, or the last value.
function Reading({ series, data, hover, options }) {
  const [xs, values] = data.columns;
  if (hover === null || values[hover] === undefined || values[hover] === null) {
    return html`<span class="chart-value num" title="${series.last} at step ${series.last_step}">
      ${number(series.last)}
    </span>`;
  }
  return html`<span class="chart-value num" title=${values[hover]}>
    <span class="muted">${positionText(options.by, xs[hover])}</span> ${number(values[hover])}
  </span>`;
}
