// A scatter plot of two columns.

import { number, toNumber } from "../format.js";
import { html, useLayoutEffect, useRef, useState } from "../view.js";
import { runAddress } from "../data/router.js";
import { recall, remember } from "../data/storage.js";
import { nameOf, valueOf } from "../work/run_columns.js";

const WIDEST = 960;
const HEIGHT = 420;
const EDGE = { left: 64, right: 16, top: 28, bottom: 36 };

export function Scatter({ runs, columns, colors }) {
  const numeric = columns.filter((column) => runs.some((run) => Number.isFinite(valueAt(run, column))));
  const [box, width] = useWidth();
  const [axes, setAxes] = useState(recall("scatter", {}));
  const choose = (changes) => {
    setAxes({ ...axes, ...changes });
    remember("scatter", { ...axes, ...changes });
  };
  const given = numeric.filter((column) => column.startsWith("p:"));
  const differs = (column) => new Set(runs.map((run) => valueAt(run, column)).filter(Number.isFinite)).size > 1;
  const x = numeric.includes(axes.x) ? axes.x : (given.find(differs) ?? given[0] ?? numeric[0]);
  const y = numeric.includes(axes.y) ? axes.y : (numeric.find((column) => column.startsWith("m:")) ?? numeric.at(-1));
  if (!numeric.length) return html`<p class="muted">These runs have no numeric columns.</p>`;
  const points = runs
    .map((run) => ({ run, x: valueAt(run, x), y: valueAt(run, y) }))
    .filter((point) => Number.isFinite(point.x) && Number.isFinite(point.y));
  const picker = (name, value) =>
    html`<label>
      ${name === "x" ? "X axis" : "Y axis"}${" "}
      <select
        aria-label=${name === "x" ? "X axis" : "Y axis"}
        onChange=${(event) => choose({ [name]: event.currentTarget.value })}
      >
        ${numeric.map(
          (column) =>
            html`<option key=${column} value=${column} selected=${column === value}>
              ${nameOf(column)}
            </option>`,
        )}
      </select>
    </label>`;
  const [placeX, ticksX] = scale(
    points.map((point) => point.x),
    EDGE.left,
    width - EDGE.right,
    axes.logX,
  );
  const [placeY, ticksY] = scale(
    points.map((point) => point.y),
    HEIGHT - EDGE.bottom,
    EDGE.top,
    axes.logY,
  );
  return html`<section class="stack" aria-label="Scatter" ref=${box}>
    <div class="controls controls-left">
      ${picker("x", x)}
      <label>
        <input
          type="checkbox"
          checked=${axes.logX}
          onChange=${(event) => choose({ logX: event.currentTarget.checked })}
        />${" "}
        Log x
      </label>
      ${picker("y", y)}
      <label>
        <input
          type="checkbox"
          checked=${axes.logY}
          onChange=${(event) => choose({ logY: event.currentTarget.checked })}
        />${" "}
        Log y
      </label>
    </div>
    <svg
      class="figure"
      viewBox="0 0 ${width} ${HEIGHT}"
      role="group"
      aria-label="${nameOf(y)} against ${nameOf(x)}, ${points.length} runs"
    >
      ${ticksX.map(
        (tick) =>
          html`<g>
            <line class="grid-line" x1=${placeX(tick)} x2=${placeX(tick)} y1=${EDGE.top} y2=${HEIGHT - EDGE.bottom} />
            <text class="tick" x=${placeX(tick)} y=${HEIGHT - 20} text-anchor="middle">
              ${number(tick)}
            </text>
          </g>`,
      )}
      ${ticksY.map(
        (tick) =>
          html`<g>
            <line class="grid-line" y1=${placeY(tick)} y2=${placeY(tick)} x1=${EDGE.left} x2=${width - EDGE.right} />
            <text class="tick" x=${EDGE.left - 8} y=${placeY(tick) + 4} text-anchor="end">
              ${number(tick)}
            </text>
          </g>`,
      )}
      <text class="axis-name" x=${width - EDGE.right} y=${HEIGHT - 4} text-anchor="end">
        ${nameOf(x)}
      </text>
      <text class="axis-name" x="4" y="14">
        ${nameOf(y)}
      </text>
      ${points.map(
        ({ run, x: across, y: up }) =>
          html`<a key=${run.id} href=${runAddress(run.id)} aria-label="${run.name}: ${number(across)}, ${number(up)}">
            <circle
              class="dot"
              cx=${placeX(across)}
              cy=${placeY(up)}
              r="5"
              style=${{ fill: `var(${colors.get(run.id)})` }}
            >
              <title>
                ${[run.name, `${nameOf(x)} ${across}`, `${nameOf(y)} ${up}`].join("\n")}
              </title>
            </circle>
          </a>`,
      )}
    </svg>
  </section>`;
}

// Use the available width, so that the text keeps its size on a phone.
function useWidth() {
  const box = useRef(null);
  const [width, setWidth] = useState(WIDEST);
  useLayoutEffect(() => {
    if (!box.current) return undefined;
    const measure = () => setWidth(Math.min(WIDEST, box.current.clientWidth));
    const watcher = new ResizeObserver(measure);
    watcher.observe(box.current);
    measure();
    return () => watcher.disconnect();
  }, []);
  return [box, width];
}

const valueAt = (run, column) => {
  const value = valueOf(run, column);
  return value === undefined || value === null || typeof value === "boolean" ? NaN : toNumber(value);
};

// Return a function from values to positions, and the ticks.
function scale(values, from, to, log) {
  const usable = log ? values.filter((value) => value > 0) : values;
  let low = Math.min(...usable);
  let high = Math.max(...usable);
  if (!usable.length) [low, high] = [log ? 1 : 0, log ? 10 : 1];
  if (low === high)
    [low, high] = log ? [low / 2, high * 2] : [low - (Math.abs(low) * 0.1 || 1), high + (Math.abs(high) * 0.1 || 1)];
  const of = log ? Math.log10 : (value) => value;
  const room = (of(high) - of(low)) * 0.05;
  const [begin, end] = [of(low) - room, of(high) + room];
  const place = (value) => from + ((of(log ? Math.max(value, 1e-300) : value) - begin) / (end - begin)) * (to - from);
  return [place, log ? decades(low, high) : round(low, high)];
}

function round(low, high) {
  const raw = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((size) => size >= raw);
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-9 && ticks.length < 12; tick += step)
    ticks.push(Number(tick.toPrecision(12)));
  return ticks;
}

function decades(low, high) {
  const ticks = [];
  for (let power = Math.ceil(Math.log10(low) - 1e-9); power <= Math.log10(high) + 1e-9 && ticks.length < 12; power += 1)
    ticks.push(10 ** power);
  return ticks.length ? ticks : [low, high];
}
