// Utilization, memory and holder of each GPU over the last hours.

import { cardMemory, duration } from "../format.js";
import { html, useMemo, useState } from "../view.js";
import { useFetched } from "../data/fetched.js";
import { recall, remember } from "../data/storage.js";
import { Problem } from "../ui/message.js";
import { RunLink } from "../work/run_link.js";

const SPANS = { 1: "1 hour", 3: "3 hours", 12: "12 hours" };
const [WIDTH, HEIGHT, POINTS] = [600, 64, 240];
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });

export function GpuTraces({ gpus }) {
  const [hours, setHours] = useState(recall("gpu-hours", 3));
  const { data, problem, refresh } = useFetched("cluster/history", { hours, max_points: POINTS }, { every: 15_000 });
  const choose = (value) => (remember("gpu-hours", value), setHours(value));
  return html`<section class="stack" aria-label="GPU history">
    <div class="section-head">
      <h2>History</h2>
      <div class="segments" role="group" aria-label="Time range">
        ${Object.entries(SPANS).map(
          ([value, label]) =>
            html`<button
              key=${value}
              aria-pressed=${String(Number(value) === hours)}
              onClick=${() => choose(Number(value))}
            >
              ${label}
            </button>`,
        )}
      </div>
      <span class="trace-keys small">
        <span class="key-busy">utilization</span>
        <span class="key-memory">memory</span>
        <span class="key-held">used by a run</span>
      </span>
    </div>
    ${
      problem && !data
        ? html`<${Problem} error=${problem} retry=${refresh} />`
        : data && html`<${Traces} gpus=${gpus} history=${data} />`
    }
  </section>`;
}

function Traces({ gpus, history }) {
  const [pointed, setPointed] = useState(null); // the pointed time, shared by all GPUs
  const until = useMemo(() => Date.now() / 1000, [history]);
  const span = {
    from: until - history.hours * 3600,
    until,
    gap: Math.max(history.every_seconds * 3, (history.hours * 3600 * 3) / POINTS),
  };
  const traces = new Map(history.gpus.map((trace) => [trace.uuid, trace]));
  return html`<div class="gpu-traces">
    ${gpus.map(
      (gpu) =>
        html`<${Trace}
          key=${gpu.uuid}
          gpu=${gpu}
          trace=${traces.get(gpu.uuid)}
          span=${span}
          pointed=${pointed}
          onPoint=${setPointed}
        />`,
    )}
    <div class="trace-axis muted small num" aria-hidden="true">
      <span>${clock.format(span.from * 1000)}</span>
      <span>${clock.format((span.from + until) * 500)}</span>
      <span>now</span>
    </div>
  </div>`;
}

function Trace({ gpu, trace, span, pointed, onPoint }) {
  const drawn = useMemo(() => trace && draw(trace, gpu, span), [trace, gpu.memory_total_mb, span.from]);
  if (!drawn)
    return html`<figure class="gpu-trace">
      <figcaption>
        <strong>GPU ${gpu.index}</strong> <span class="muted">No samples yet.</span>
      </figcaption>
    </figure>`;
  const at = pointed === null ? trace.times.length - 1 : nearest(trace.times, pointed);
  const point = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    onPoint(span.from + ((event.clientX - box.left) / box.width) * (span.until - span.from));
  };
  const recorded = duration(trace.times.at(-1) - trace.times[0]);
  return html`<figure class="gpu-trace">
    <figcaption>
      <strong>GPU ${gpu.index}</strong>
      <span class="num muted">
        ${pointed === null ? "" : `${clock.format(trace.times[at] * 1000)} · `}
        ${Math.round(trace.utilization[at])} % utilization, ${cardMemory(trace.memory_used_mb[at])}
        ${
          trace.run_ids[at] &&
          html`${" "}
          · <${RunLink} id=${trace.run_ids[at]} />`
        }
      </span>
    </figcaption>
    <svg
      class="trace"
      viewBox="0 0 ${WIDTH} ${HEIGHT}"
      preserveAspectRatio="none"
      role="img"
      aria-label="GPU ${gpu.index}: utilization, memory and runs over ${recorded}"
      onPointerMove=${point}
      onPointerLeave=${() => onPoint(null)}
    >
      ${drawn.held.map(
        ({ x, width, run }) =>
          html`<rect key=${x} class="trace-held" x=${x} width=${width} y=${HEIGHT - 4} height="4">
            <title>${run}</title>
          </rect>`,
      )}
      <path d=${drawn.memory} class="trace-memory" />
      <path d=${drawn.busy} class="trace-busy" />
      ${
        pointed !== null && html`<line class="trace-pointer" x1=${drawn.x[at]} x2=${drawn.x[at]} y1="0" y2=${HEIGHT} />`
      }
    </svg>
  </figure>`;
}

// Lines break where samples are missing, for example while the server was down.
function draw(trace, gpu, { from, until, gap }) {
  const x = trace.times.map((time) => Number((((time - from) / (until - from)) * WIDTH).toFixed(1)));
  const breaks = trace.times.map((time, at) => at === 0 || time - trace.times[at - 1] > gap);
  const line = (shares) =>
    shares
      .map(
        (share, at) =>
          `${breaks[at] ? "M" : "L"}${x[at]} ${(HEIGHT - 7 - Math.min(1, share) * (HEIGHT - 10)).toFixed(1)}`,
      )
      .join("");
  return {
    x,
    busy: line(trace.utilization.map((value) => value / 100)),
    memory: line(trace.memory_used_mb.map((value) => value / gpu.memory_total_mb)),
    held: held(trace.run_ids, x, breaks),
  };
}

function held(runs, x, breaks) {
  const bars = [];
  runs.forEach((run, at) => {
    const last = bars.at(-1);
    if (last?.run === run && !breaks[at]) last.width = x[at] - last.x;
    else if (run) bars.push({ run, x: x[at], width: 1.5 });
    else if (last) bars.push({ run: "", x: x[at], width: 0 });
  });
  return bars.filter((bar) => bar.run);
}

function nearest(times, moment) {
  const after = times.findIndex((time) => time >= moment);
  if (after <= 0) return after === 0 ? 0 : times.length - 1;
  return moment - times[after - 1] < times[after] - moment ? after - 1 : after;
}
