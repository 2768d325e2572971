// Charts of a sweep: best so far, importance, parallel coordinates, and a heat map of two parameters.

import { number, text } from "../format.js";
import { html, useMemo, useState } from "../view.js";
import { Meter } from "../ui/meter.js";
import { Plot } from "../charts/plot.js";

const LINES = 300;
const CELLS = 30;
const LINE_HEIGHT = 13; // height of a tick label
const READABLE = 0.46; // strongest cell color with readable text

export function SweepPictures({ sweep, results }) {
  const done = useMemo(() => results.configurations.filter(({ mean }) => typeof mean === "number"), [results]);
  const names = useMemo(() => varied(done), [done]);
  const tried = useMemo(() => varied(results.configurations), [results]); // with failed configurations
  if (!done.length) return null;
  return html`<div class="sweep-pictures">
    <${BestSoFar} results=${results} metric=${sweep.metric} />
    <${Importance} importance=${results.importance} />
    ${names.length > 0 && html`<${Parallel} done=${done} names=${names} metric=${sweep.metric} />`}
    ${
      tried.length > 1 &&
      html`<${HeatMap} all=${results.configurations} done=${done} names=${tried} metric=${sweep.metric} />`
    }
  </div>`;
}

// Return the parameters with more than one value.
function varied(configurations) {
  const names = [...new Set(configurations.flatMap(({ params }) => Object.keys(params)))];
  return names.filter((name) => new Set(configurations.map(({ params }) => JSON.stringify(params[name]))).size > 1);
}

function BestSoFar({ results, metric }) {
  const columns = useMemo(
    () => [results.best_so_far.map(([at]) => at), results.best_so_far.map(([, value]) => value)],
    [results],
  );
  return html`<figure class="chart">
    <figcaption>
      <span class="chart-name">Best ${metric.key} so far</span>
      <span class="chart-value num">${number(columns[1].at(-1))}</span>
    </figcaption>
    <${Plot}
      columns=${columns}
      lines=${[{ color: "--series-1" }]}
      sync="best"
      label="Best ${metric.key} after each configuration"
    />
  </figure>`;
}

function Importance({ importance }) {
  const shares = Object.entries(importance.parameters).sort(([, a], [, b]) => b - a);
  return html`<figure class="chart">
    <figcaption>
      <span class="chart-name">Parameter importance</span>
    </figcaption>
    <div class="importance">
      ${shares.map(
        ([name, share]) =>
          html`<span key=${name} title=${name}>
            ${name}
          </span>
          <${Meter} value=${share} label="Importance of ${name}" />
          <span class="num">${Math.round(share * 100)} %</span>`,
      )}
      ${!shares.length && html`<span class="muted">Not enough results yet.</span>`}
    </div>
    <p class="muted small importance-note">${importance.note || importance.method}</p>
  </figure>`;
}

// Return a function from a value to its quality: 0 is the worst result, 1 the best.
function quality(done, goal) {
  const values = done.map(({ mean }) => mean);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return (mean) => (high === low ? 1 : goal === "max" ? (mean - low) / (high - low) : (high - mean) / (high - low));
}

const shade = (share) => `color-mix(in oklab, var(--series-1) ${Math.round(share * 100)}%, var(--heat-low))`;

const phone = matchMedia("(max-width: 640px)");

function Parallel({ done, names, metric }) {
  const [over, setOver] = useState(null);
  const good = useMemo(() => quality(done, metric.goal), [done, metric.goal]);
  const axes = useMemo(
    () => [
      ...names.map((name) =>
        axisOf(
          name,
          done.map(({ params }) => params[name]),
        ),
      ),
      axisOf(
        metric.key,
        done.map(({ mean }) => mean),
      ),
    ],
    [done, names],
  );
  const [width, height, top, bottom] = [
    phone.matches ? axes.length * 115 : Math.max(860, axes.length * 170),
    280,
    34,
    250,
  ];
  const margin = phone.matches ? 40 : 60;
  const across = (at) => margin + (at * (width - 2 * margin)) / Math.max(1, axes.length - 1);
  const up = (axis, value) => bottom - axis.place(value) * (bottom - top);
  const pathOf = (one) =>
    [...names.map((name) => one.params[name]), one.mean]
      .map((value, at) => `${at ? "L" : "M"}${across(at).toFixed(1)} ${up(axes[at], value).toFixed(1)}`)
      .join("");
  const drawn = [...done].slice(0, LINES).reverse(); // best on top
  return html`<figure class="chart chart-big">
    <figcaption>
      <span class="chart-name">All configurations</span>
      <span class="chart-value num">
        ${
          over &&
          html`<span class="muted">${names.map((name) => `${name}=${text(over.params[name])}`).join(" ")}</span>${" "}
          ${number(over.mean)}`
        }
      </span>
    </figcaption>
    <div class="wide-figure" tabindex="0" role="region" aria-label="Parallel coordinates">
      <svg
        viewBox="0 0 ${width} ${height}"
        class="parallel"
        role="img"
        aria-label="Parallel coordinates of ${done.length} configurations"
      >
        ${drawn.map(
          (one) =>
            html`<path
              key=${one.config_hash}
              d=${pathOf(one)}
              class="parallel-line ${over === one ? "parallel-over" : ""}"
              style=${{ stroke: shade(good(one.mean)) }}
              onPointerEnter=${() => setOver(one)}
              onPointerLeave=${() => setOver(null)}
            />`,
        )}
        ${axes.map(
          (axis, at) =>
            html`<g key=${at}>
              <line class="axis-line" x1=${across(at)} x2=${across(at)} y1=${top} y2=${bottom} />
              <text class="axis-name" x=${across(at)} y="16" text-anchor="middle">
                ${axis.name}
              </text>
              ${apart(axis.ticks, (value) => up(axis, value)).map(
                (value) =>
                  html`<text
                    class="tick tick-halo"
                    x=${across(at) + (at === axes.length - 1 ? -6 : 6)}
                    y=${up(axis, value) + 4}
                    text-anchor=${at === axes.length - 1 ? "end" : "start"}
                  >
                    ${typeof value === "number" ? number(value) : text(value)}
                  </text>`,
              )}
            </g>`,
        )}
      </svg>
    </div>
  </figure>`;
}

// Leave out ticks whose labels would overlap; keep the ends.
function apart(ticks, place) {
  const kept = [];
  for (const value of [ticks.at(0), ticks.at(-1), ...ticks])
    if (kept.every((other) => Math.abs(place(other) - place(value)) >= LINE_HEIGHT)) kept.push(value);
  return kept;
}

// Numbers by size (log scale if they span decades), everything else in order of appearance.
function axisOf(name, values) {
  const distinct = [...new Set(values.map((value) => JSON.stringify(value)))].map((word) =>
    word === undefined ? undefined : JSON.parse(word),
  );
  if (distinct.every((value) => typeof value === "number")) {
    const sorted = [...distinct].sort((a, b) => a - b);
    const [low, high] = [sorted[0], sorted.at(-1)];
    const of = low > 0 && high / low > 20 ? Math.log : (value) => value;
    const place = (value) => (high === low ? 0.5 : (of(value) - of(low)) / (of(high) - of(low)));
    return { name, place, ticks: sorted.length <= 6 ? sorted : [low, sorted[Math.floor(sorted.length / 2)], high] };
  }
  const texts = distinct.map((value) => JSON.stringify(value));
  const place = (value) => (texts.length < 2 ? 0.5 : texts.indexOf(JSON.stringify(value)) / (texts.length - 1));
  return { name, place, ticks: distinct.slice(0, 12).filter((value) => value !== undefined) };
}

function HeatMap({ all, done, names, metric }) {
  const [chosen, setChosen] = useState(["", ""]);
  const x = names.includes(chosen[0]) ? chosen[0] : names[0];
  const y = names.includes(chosen[1]) && chosen[1] !== x ? chosen[1] : names.find((name) => name !== x);
  const good = useMemo(() => quality(done, metric.goal), [done, metric.goal]);
  const values = (name) =>
    [...new Set(all.map(({ params }) => JSON.stringify(params[name])))]
      .filter(Boolean)
      .map((word) => JSON.parse(word))
      .sort((a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a) < String(b) ? -1 : 1))
      .slice(0, CELLS);
  const [xs, ys] = [values(x), values(y)];
  const those = (configurations, a, b) =>
    configurations.filter(
      ({ params }) =>
        JSON.stringify(params[x]) === JSON.stringify(a) && JSON.stringify(params[y]) === JSON.stringify(b),
    );
  const picker = (index, value) =>
    html`<select
      aria-label=${index ? "Y axis" : "X axis"}
      onChange=${(event) => setChosen(index ? [x, event.currentTarget.value] : [event.currentTarget.value, y])}
    >
      ${names.map(
        (name) =>
          html`<option key=${name} value=${name} selected=${name === value}>
            ${name}
          </option>`,
      )}
    </select>`;
  return html`<figure class="chart chart-big">
    <figcaption>
      <span class="chart-name">Best ${metric.key} by two parameters</span>
      <span class="heat-pick">
        X axis ${picker(0, x)} Y axis ${picker(1, y)}
      </span>
    </figcaption>
    <div class="wide-figure" tabindex="0" role="region" aria-label="Heat map">
      <table class="heat">
        <thead>
          <tr>
            <th scope="col">
              ${y} \\ ${x}
            </th>
            ${xs.map(
              (value) =>
                html`<th scope="col" class="num">
                  ${typeof value === "number" ? number(value) : text(value)}
                </th>`,
            )}
          </tr>
        </thead>
        <tbody>
          ${ys.map(
            (down) =>
              html`<tr>
                <th scope="row" class="num">
                  ${typeof down === "number" ? number(down) : text(down)}
                </th>
                ${xs.map((value) => {
                  const mean = bestOf(those(done, value, down), metric.goal);
                  if (mean === null)
                    return html`<td class="muted small">${those(all, value, down).length ? "no value" : ""}</td>`;
                  return html`<td class="num" style=${{ background: shade(good(mean) * READABLE) }} title=${mean}>
                    ${number(mean)}
                  </td>`;
                })}
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </figure>`;
}

function bestOf(some, goal) {
  if (!some.length) return null;
  const means = some.map(({ mean }) => mean);
  return goal === "max" ? Math.max(...means) : Math.min(...means);
}
