// One metric of all compared runs. Fetched when it becomes visible, and again when a run logs more.

import { number, text, toNumber } from "../format.js";
import { html, useEffect, useMemo, useRef, useState } from "../view.js";
import { get, isAborted } from "../data/api.js";
import { useKeys } from "../data/keyboard.js";
import { onHint, resync } from "../data/store.js";
import { throttle } from "../data/throttle.js";
import { Icon } from "../ui/icon.js";
import { ChartNote, chartOptions, NO_EPOCHS, positionText } from "../charts/chart_options.js";
import { Plot, TALL } from "../charts/plot.js";
import { savePicture } from "../charts/plot_picture.js";
import { isDrawable, undrawnCounts, smoothed } from "../charts/series.js";
import uPlot from "../vendor/uplot.js";

const MAX_POINTS = 1000;
const REFRESH_MS = 2000;

export function CompareChart({ metric, runs, colors, mean, zoom }) {
  const box = useRef(null);
  const plot = useRef(null);
  const [hover, setHover] = useState(null);
  const [isBig, setBig] = useState(false);
  useKeys({ ...(isBig && { Escape: () => setBig(false) }) });
  const isSeen = useSeen(box);
  const { by } = chartOptions.value;
  const having = runs.filter((run) => run.summary[metric]).map(({ id }) => id);
  const found = useCompared(metric, isSeen ? having : [], by, mean);
  const data = useMemo(
    () => found && columnsOfRuns(found, { ...chartOptions.value, mean }, colors),
    [found, chartOptions.value, mean, colors],
  );
  const isReady = data && found.by === by && data.lines.length > 0;
  return html`<figure
    class="chart ${isBig ? "chart-big" : ""}"
    ref=${box}
    aria-label="Chart of ${metric}"
    aria-busy=${String(!found)}
  >
    <figcaption>
      <span class="chart-name" title=${metric}>
        ${metric}
      </span>
      ${
        isReady &&
        html`<span class="chart-tools">
          <button
            class="bare"
            aria-label=${isBig ? "Smaller" : "Larger"}
            aria-pressed=${String(isBig)}
            onClick=${() => setBig(!isBig)}
          >
            <${Icon} name="maximize-2" size="12" />
          </button>
          <button
            class="bare"
            aria-label="Download image of ${metric}"
            onClick=${() =>
              savePicture(
                plot.current,
                `compare ${metric}.png`,
                `${metric} by ${by}`,
                data.lines.filter(({ silent }) => !silent),
              )}
          >
            <${Icon} name="download" size="14" />
          </button>
        </span>`
      }
    </figcaption>
    ${
      isReady &&
      html`<${Plot}
        columns=${data.columns}
        lines=${data.lines}
        bands=${data.bands}
        axis=${by}
        logX=${chartOptions.value.logX}
        logY=${chartOptions.value.log}
        zoom=${zoom}
        sync="compare"
        height=${isBig ? TALL : undefined}
        label="${metric} of ${having.length} runs"
        onHover=${setHover}
        onPlot=${(made) => (plot.current = made)}
      />`
    }
    ${by === "epoch" && found?.by === by && !isReady && html`<p class="chart-note chart-note-big">${NO_EPOCHS}</p>`}
    ${
      data &&
      found.by === by &&
      html`<${ChartNote} data=${data} refused=${refusedOf(runs, metric)} isEmpty=${!isReady} />`
    }
    ${isReady && hover !== null && html`<${Reading} data=${data} hover=${hover} by=${by} />`}
  </figure>`;
}

// Count rejected values of all runs by reason.
function refusedOf(runs, metric) {
  const counts = new Map();
  for (const { key, why, count } of runs.flatMap((run) => run.refused?.first ?? []))
    if (key === metric) counts.set(why, (counts.get(why) ?? 0) + count);
  return [...counts].map(([why, count]) => ({ why, count }));
}

// The values of all curves at the pointer, largest first.
function Reading({ data, hover, by }) {
  const [xs, ...columns] = data.columns;
  const values = data.lines
    .map((line, at) => ({ ...line, value: near(columns[at], hover) }))
    .filter(({ silent, value }) => !silent && value !== null);
  values.sort((a, b) => b.value - a.value);
  return html`<div class="reading">
    <span class="muted num">${positionText(by, xs[hover])}</span>
    ${values.slice(0, 8).map(
      ({ name, color, value }) =>
        html`<span class="reading-line">
          <span class="swatch" style=${{ background: `var(${color})` }}></span>
          <span class="reading-name">${name}</span>
          <span class="num">${number(value)}</span>
        </span>`,
    )}
  </div>`;
}

// Return the value at a position, or the last one before it: runs log at different steps.
function near(column, at) {
  for (let index = at; index >= 0 && index > at - 200; index -= 1)
    if (column[index] !== null && column[index] !== undefined) return column[index];
  return null;
}

function useSeen(box) {
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    const watcher = new IntersectionObserver(
      (entries) => entries.some(({ isIntersecting }) => isIntersecting) && setSeen(true),
      { rootMargin: "600px" },
    );
    watcher.observe(box.current);
    return () => watcher.disconnect();
  }, []);
  return seen;
}

function useCompared(metric, ids, by, mean) {
  const [found, setFound] = useState(null);
  const wanted = ids.join(",");
  const again = resync.value;
  useEffect(() => {
    if (!wanted) return undefined;
    const abort = new AbortController();
    const load = throttle(async () => {
      try {
        const answer = await get(
          "metrics/compare",
          { key: metric, run_ids: wanted, max_points: MAX_POINTS, x: by, groups: mean },
          abort.signal,
        );
        setFound({ ...answer, by });
      } catch (error) {
        if (by === "epoch" && error.status === 404) setFound({ runs: [], groups: [], by });
        else if (!isAborted(error) && error.status) throw error;
      }
    }, REFRESH_MS);
    load();
    const stops = ids.map((id) => onHint("metrics", id, load));
    return () => {
      stops.forEach((stop) => stop());
      load.cancel();
      abort.abort();
    };
  }, [metric, wanted, by, mean, again]);
  return found;
}

// Prepare one metric of several runs for drawing: a shared x, one column per curve, one band per group of seeds.

const AXES = { step: "steps", time: "times", epoch: "epochs" };

const drawable = (values, log) =>
  values.map(toNumber).map((value) => (isDrawable(value) && (!log || value > 0) ? value : null));

// `colors` by run id. With `mean`, several seeds become one curve with a band.
function columnsOfRuns(found, { by, smoothing, log, logX, mean }, colors) {
  const axis = AXES[by];
  const tables = [];
  const lines = [];
  const bands = [];
  const add = (x, columns) => {
    const kept = logX ? [...x.keys()].filter((at) => x[at] > 0) : null;
    tables.push([x, ...columns].map((column) => (kept ? kept.map((at) => column[at]) : column)));
  };
  const curve = (x, values, color, name) => {
    const clean = drawable(values, log);
    if (!x.length || clean.every((value) => value === null)) return;
    add(x, [smoothing ? smoothed(clean, smoothing) : clean]);
    lines.push({ color, name, dots: x.length < 40 });
  };
  for (const group of mean ? found.groups : []) {
    const color = colors.get(group.run_ids[0]);
    if (group.n < 2) continue;
    const middle = drawable(group.mean, log);
    const edge = (sign) =>
      drawable(
        middle.map((value, at) =>
          value === null || group.std[at] === null ? NaN : value + sign * toNumber(group.std[at]),
        ),
        log,
      );
    add(group[axis], [edge(1), edge(-1), smoothing ? smoothed(middle, smoothing) : middle]);
    const first = lines.length + 1;
    lines.push(
      { color, width: 0, dots: false, silent: true },
      { color, width: 0, dots: false, silent: true },
      {
        color,
        name: `mean of ${group.n}${differences(group, found.groups)}`,
        runs: group.run_ids,
        dots: group[axis].length < 40,
      },
    );
    bands.push({ upper: first, lower: first + 1, color });
  }
  const inBands = new Set(mean ? found.groups.filter(({ n }) => n > 1).flatMap(({ run_ids: ids }) => ids) : []);
  for (const run of found.runs)
    if (!inBands.has(run.run_id)) curve(run[axis] ?? run.steps, run.values, colors.get(run.run_id), run.name);
  return {
    columns: joined(tables),
    lines,
    bands,
    ...undrawnCounts(
      found.runs.flatMap(({ values }) => values.map(toNumber)),
      log,
    ),
  };
}

// The parameters in which a group differs from the others.
function differences({ params }, groups) {
  const differs = (name) => new Set(groups.map((group) => JSON.stringify(group.params[name]))).size > 1;
  const parts = Object.keys(params)
    .filter(differs)
    .map((name) => `${name}=${text(params[name])}`);
  return parts.length ? `: ${parts.join(" ")}` : "";
}

// Join the tables. Runs of one script mostly log at the same steps and need no join.
function joined(tables) {
  if (!tables.length) return [[], []];
  const [x] = tables[0];
  const isOne = tables.every(([other]) => other.length === x.length && other.every((value, at) => value === x[at]));
  return isOne ? [x, ...tables.flatMap(([, ...columns]) => columns)] : uPlot.join(tables);
}
