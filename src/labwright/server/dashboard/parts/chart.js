// One metric as a curve. uPlot draws on a canvas; words beside it are ordinary text of the page.

import { duration, number } from "../format.js";
import { columnsOf } from "../series.js";
import { html, useEffect, useMemo, useRef, useState } from "../ui.js";
import uPlot from "../vendor/uplot.js";

const HEIGHT = 190;
const dark = matchMedia("(prefers-color-scheme: dark)");
const WHOLE_STEPS = Array.from({ length: 17 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();
export const PALETTE = ["--series-1", "--series-2", "--series-3", "--series-4", "--series-5", "--series-6"];

export function Chart({ name, series, look, color, zoom }) {
  const box = useRef(null);
  const plot = useRef(null);
  const [hover, setHover] = useState(null);
  const data = useMemo(() => columnsOf(series, look), [series, look]);
  const isEmpty = data.columns[1].every((value) => value === null);

  useEffect(() => {
    const place = box.current;
    const make = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(place, look, color, zoom, setHover), data.columns, place);
    };
    make();
    const fit = () => {
      const width = place.clientWidth; // 0 on the way out of the page, which uPlot cannot divide into ticks
      if (width && plot.current) plot.current.setSize({ width, height: HEIGHT });
    };
    const watcher = new ResizeObserver(fit);
    watcher.observe(place);
    dark.addEventListener("change", make); // a canvas does not follow the style sheet by itself
    return () => {
      watcher.disconnect();
      dark.removeEventListener("change", make);
      plot.current.destroy();
      plot.current = null;
    };
  }, [look, color, isEmpty]);

  useEffect(() => plot.current?.setData(data.columns, !zoom.value), [data]);
  const range = zoom.value;
  useEffect(() => {
    if (range) plot.current?.setScale("x", range);
    else plot.current?.setData(data.columns);
  }, [range]);

  return html`<figure class="chart" aria-label="Chart of ${name}">
    <figcaption>
      <span class="chart-name" title=${name}>${name}</span>
      <${Reading} series=${series} data=${data} hover=${hover} look=${look} />
    </figcaption>
    <div class="chart-plot" ref=${box} role="img" aria-label="${name}: last ${number(series.last)} at step ${series.last_step}"></div>
    <${Note} data=${data} isEmpty=${isEmpty} />
  </figure>`;
}

// The value under the pointer, else the last one.
function Reading({ series, data, hover, look }) {
  const [xs, values] = data.columns;
  if (hover === null || values[hover] === undefined || values[hover] === null) {
    return html`<span class="chart-value num" title="${series.last} at step ${series.last_step}">${number(series.last)}</span>`;
  }
  const at = look.by === "time" ? duration(xs[hover]) : `step ${xs[hover]}`;
  return html`<span class="chart-value num"><span class="muted">${at}</span> ${number(values[hover])}</span>`;
}

function Note({ data, isEmpty }) {
  const parts = [];
  if (data.strange) parts.push(`${data.strange} NaN or infinite`);
  if (data.hidden) parts.push(`${data.hidden} not above zero, not on a log axis`);
  if (!parts.length) return null;
  return html`<p class="chart-note ${isEmpty ? "chart-note-big" : ""}">${parts.join(" · ")}</p>`;
}

function options(box, { by, smoothing, log }, color, zoom, setHover) {
  const style = getComputedStyle(document.documentElement);
  const paint = (name) => style.getPropertyValue(name).trim();
  const axis = {
    stroke: paint("--muted"),
    font: "11px system-ui, sans-serif",
    grid: { stroke: paint("--line"), width: 1 },
    ticks: { show: false },
  };
  const stroke = paint(color);
  return {
    width: box.clientWidth || 300,
    height: HEIGHT,
    legend: { show: false },
    padding: [8, 8, 0, 0],
    cursor: { sync: { key: "run" }, drag: { x: true, y: false, setScale: false }, y: false, points: { size: 7 } },
    scales: { x: { time: false, range: (_, min, max) => wide(min, max) }, y: log ? { distr: 3 } : { range: (_, min, max) => padded(min, max) } },
    axes: [
      { ...axis, size: 24, gap: 4, incrs: by === "step" ? WHOLE_STEPS : undefined, values: (_, ticks) => ticks.map(by === "time" ? duration : shortNumber) },
      { ...axis, size: 52, gap: 6, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : shortNumber(tick))) },
    ],
    series: [
      {},
      { stroke, width: 1, alpha: smoothing ? 0.25 : 0, points: { show: false } },
      { stroke, width: 1.75, points: { size: 4, fill: stroke } },
    ],
    hooks: {
      setCursor: [(plot) => setHover(plot.cursor.idx ?? null)],
      setSelect: [(plot) => select(plot, zoom)],
      ready: [(plot) => plot.over.addEventListener("dblclick", () => (zoom.value = null))],
    },
  };
}

// Dragging over one chart zooms them all; a double click shows everything again.
function select(plot, zoom) {
  const { left, width } = plot.select;
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  const [min, max] = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
  if (width >= 4 && max - min > Math.abs(max) * 1e-9) zoom.value = { min, max };
}

// Ticks that floating point cannot tell apart would be counted for ever, so no range is narrower than that.
function wide(min, max) {
  if (min === null) return [null, null];
  const least = Math.max(Math.abs(min), Math.abs(max)) * 1e-9 || 1;
  return max - min >= least ? [min, max] : [min - least, max + least];
}

function padded(min, max) {
  if (min === null) return [null, null];
  const size = Math.max(Math.abs(min), Math.abs(max));
  const room = max - min > size * 1e-9 ? (max - min) * 0.06 : size * 0.1 || 1; // a flat line runs in the middle
  return [min - room, max + room];
}

function shortNumber(value) {
  const size = Math.abs(value);
  if (size >= 1e6 && size < 1e9) return `${Number((value / 1e6).toPrecision(3))}M`;
  if (size >= 1e4 && size < 1e6) return `${Number((value / 1e3).toPrecision(3))}k`;
  return number(Number(value.toPrecision(10)));
}
