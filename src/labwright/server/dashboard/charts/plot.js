// A line plot drawn by uPlot. It knows columns and lines, not runs.

import { duration, number } from "../format.js";
import { html, useEffect, useRef } from "../view.js";
import uPlot from "../vendor/uplot.js";

const HEIGHT = 190;
export const TALL = 420;
const LABELS = 52; // width of the y labels, so that plots below each other align
const dark = matchMedia("(prefers-color-scheme: dark)");
const WHOLE_STEPS = Array.from({ length: 17 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();
const PALETTE = [
  "--series-1",
  "--series-2",
  "--series-3",
  "--series-4",
  "--series-5",
  "--series-6",
  "--series-7",
  "--series-8",
];
export const colorAt = (index) => PALETTE[index % PALETTE.length];

// `columns`: x values and one array per line. `lines`: { color, width, alpha, dash } in the same order. `bands`: pairs
// of columns with a filled area between them. `axis`: what x is (step, time, epoch or plain).
export function Plot({
  columns,
  lines,
  bands = [],
  axis = "step",
  logX = false,
  logY = false,
  zoom,
  sync = "charts",
  label,
  onHover,
  onPlot,
  height = HEIGHT,
}) {
  const box = useRef(null);
  const plot = useRef(null);
  const drawn = useRef(null); // the columns that are drawn
  const kind = JSON.stringify([lines, bands, axis, logX, logY, height]);

  useEffect(() => {
    const place = box.current;
    const make = () => {
      plot.current?.destroy();
      plot.current = new uPlot(
        options(place, { lines, bands, axis, logX, logY, zoom, sync, onHover, height }),
        columns,
        place,
      );
      drawn.current = columns;
      onPlot?.(plot.current);
      if (zoom?.value) plot.current.setScale("x", zoom.value);
    };
    make();
    const fit = () => {
      const width = place.clientWidth; // 0 while the page closes, which uPlot cannot handle
      if (width && plot.current && width !== plot.current.width) plot.current.setSize({ width, height });
    };
    const watcher = new ResizeObserver(fit);
    watcher.observe(place);
    dark.addEventListener("change", make); // redraw: a canvas does not follow the style sheet
    return () => {
      watcher.disconnect();
      dark.removeEventListener("change", make);
      plot.current.destroy();
      plot.current = null;
    };
  }, [kind]);

  useEffect(() => {
    if (drawn.current !== columns) plot.current?.setData(columns, !zoom?.value);
    drawn.current = columns;
  }, [columns]);
  const range = zoom?.value;
  const shown = useRef(range);
  useEffect(() => {
    if (shown.current === range) return;
    shown.current = range;
    if (range) plot.current?.setScale("x", range);
    else plot.current?.setData(columns);
  }, [range]);
  const byKeys = zoom && {
    tabindex: 0,
    "aria-keyshortcuts": KEYS,
    onKeyDown: (event) => onPlotKey(event, plot.current, zoom),
  };
  return html`<div
    class="chart-plot"
    ref=${box}
    role="img"
    aria-label=${label}
    style=${{ height: `${height}px` }}
    ...${byKeys}
  ></div>`;
}

function options(box, { lines, bands, axis, logX, logY, zoom, sync, onHover, height }) {
  const style = getComputedStyle(document.documentElement);
  const paint = (name) => style.getPropertyValue(name).trim();
  const look = {
    stroke: paint("--muted"),
    font: "11px system-ui, sans-serif",
    grid: { stroke: paint("--line"), width: 1 },
    ticks: { show: false },
  };
  return {
    width: box.clientWidth || 300,
    height,
    legend: { show: false },
    padding: [8, 14, 0, 0],
    cursor: {
      sync: { key: sync },
      drag: { x: Boolean(zoom), y: false, setScale: false },
      y: false,
      points: { size: 7 },
    },
    scales: {
      x: logX ? { time: false, distr: 3 } : { time: false, range: (_, min, max) => wide(min, max) },
      y: logY ? { distr: 3 } : { range: (_, min, max) => padded(min, max) },
    },
    axes: [
      {
        ...look,
        size: 24,
        gap: 4,
        incrs: axis === "step" && !logX ? WHOLE_STEPS : undefined,
        values: (_, ticks) => ticks.map(axis === "time" ? duration : tickText),
      },
      { ...look, size: roomForLabels, gap: 6, values: (_, ticks) => ticks.map(tickText) },
    ],
    series: [
      {},
      ...lines.map(({ color, width = 1.75, alpha = 1, dash, dots = true }) => {
        const stroke = paint(color);
        return {
          stroke,
          width,
          alpha,
          dash,
          spanGaps: true,
          points: dots ? { size: 4, fill: stroke } : { show: false },
        };
      }),
    ],
    bands: bands.map(({ upper, lower, color }) => ({ series: [upper, lower], fill: `${paint(color)}2e` })),
    hooks: {
      setCursor: onHover ? [(plot) => onHover(plot.cursor.idx ?? null)] : [],
      setSelect: zoom ? [(plot) => select(plot, zoom)] : [],
      ready: zoom ? [(plot) => canZoom(plot, zoom)] : [],
    },
  };
}

// Width of the y axis: enough for the longest label.
function roomForLabels(plot, texts, index, cycle) {
  const axis = plot.axes[index];
  if (cycle > 1) return axis._size; // stop here, or both axes could resize each other forever
  plot.ctx.font = axis.font[0];
  const widest = Math.max(0, ...(texts ?? []).map((text) => plot.ctx.measureText(text).width));
  return Math.max(LABELS, Math.ceil(widest / devicePixelRatio) + axis.gap + 2);
}

// Dragging over one chart zooms all of them; a double click resets the zoom.
function canZoom(plot, zoom) {
  plot.over.addEventListener("dblclick", () => (zoom.value = null));
  followFinger(plot, () => select(plot, zoom));
}

function select(plot, zoom) {
  const { left, width } = plot.select;
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  const [min, max] = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
  if (width >= 4 && max - min > Math.abs(max) * 1e-9) zoom.value = { min, max };
}

// Widen very narrow ranges: ticks closer than floating-point precision would loop forever.
function wide(min, max) {
  if (min === null) return [null, null];
  const least = Math.max(Math.abs(min), Math.abs(max)) * 1e-9 || 1;
  return max - min >= least ? [min, max] : [min - least, max + least];
}

function padded(min, max) {
  if (min === null) return [null, null];
  const size = Math.max(Math.abs(min), Math.abs(max));
  const room = max - min > size * 1e-9 ? (max - min) * 0.06 : size * 0.1 || 1; // a flat line is drawn in the middle
  return [min - room, max + room];
}

function tickText(value) {
  if (value === null) return "";
  const size = Math.abs(value);
  if (size >= 1e6 && size < 1e9) return `${Number((value / 1e6).toPrecision(3))}M`;
  if (size >= 1e4 && size < 1e6) return `${Number((value / 1e3).toPrecision(3))}k`;
  return number(Number(value.toPrecision(10)));
}

// Keys of a focused plot: arrows move the cursor, + and - zoom around it, 0 resets the zoom.

const MOVES = 40; // steps across a plot
const LOGARITHMIC = 3; // uPlot's constant

const KEYS = "ArrowLeft ArrowRight + - 0";

function onPlotKey(event, plot, zoom) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const action = {
    ArrowLeft: () => move(plot, -1),
    ArrowRight: () => move(plot, 1),
    "+": () => scale(plot, zoom, 0.5),
    "=": () => scale(plot, zoom, 0.5),
    "-": () => scale(plot, zoom, 2),
    0: () => (zoom.value = null),
  }[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

function move(plot, way) {
  const width = plot.over.clientWidth;
  const from = plot.cursor.left < 0 ? (way > 0 ? 0 : width) : plot.cursor.left;
  plot.setCursor({ left: Math.max(0, Math.min(width, from + (way * width) / MOVES)), top: 0 }, true, true);
}

// Zoom around the cursor, or around the middle. Start from the requested zoom: the plot is drawn later.
function scale(plot, zoom, factor) {
  const { distr, min: from, max: to } = { ...plot.scales.x, ...zoom.value };
  const [there, back] = distr === LOGARITHMIC ? [Math.log, Math.exp] : [Number, Number];
  const part = plot.cursor.left < 0 ? 0.5 : plot.cursor.left / plot.over.clientWidth;
  const size = (there(to) - there(from)) * factor;
  const first = there(from) + (size / factor - size) * part;
  const [min, max] = [back(first), back(first + size)];
  const x = plot.data[0];
  const slack = (max - min) * 1e-6; // the round trip through log is not exact
  if (min - slack <= x[0] && max + slack >= x.at(-1)) zoom.value = null;
  else if (max - min > Math.abs(max) * 1e-9) zoom.value = { min, max };
}

// Let a sideways swipe select a range, as a mouse drag does. Vertical swipes scroll the page (`touch-action` in the
// style).

const NOTHING = { left: 0, top: 0, width: 0, height: 0 };

function followFinger(plot, onSelected) {
  const { over } = plot;
  let from = null; // where the finger touched
  const placeOf = ({ clientX }) => Math.max(0, Math.min(over.clientWidth, clientX - over.getBoundingClientRect().left));
  const move = (event) => {
    if (from === null || !event.isPrimary) return;
    const at = placeOf(event);
    plot.setCursor({ left: at, top: 0 }, true, true);
    plot.setSelect({ left: Math.min(from, at), top: 0, width: Math.abs(at - from), height: over.clientHeight }, false);
  };
  const end = (then) => () => {
    if (from !== null) then();
    from = null;
  };
  over.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch" && event.isPrimary) from = placeOf(event);
  });
  over.addEventListener("pointermove", move);
  over.addEventListener("pointerup", end(onSelected));
  over.addEventListener(
    "pointercancel",
    end(() => plot.setSelect(NOTHING, false)),
  ); // the page scrolls
}
