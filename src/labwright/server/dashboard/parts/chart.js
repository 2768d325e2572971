// One metric of one run as a curve; words beside it are ordinary text of the page.

import { getBlob, runPath } from "../api.js";
import { saveBlob } from "../downloads.js";
import { number } from "../format.js";
import { useKeys } from "../keyboard.js";
import { askAddress } from "../router.js";
import { columnsOf } from "../series.js";
import { knownRun } from "../store.js";
import { html, useMemo, useRef, useState } from "../ui.js";
import { placeText } from "./chart_look.js";
import { ChartNote } from "./chart_note.js";
import { Icon } from "./icon.js";
import { Menu } from "./menu.js";
import { Plot, TALL } from "./plot.js";
import { savePicture } from "./plot_picture.js";
import { sayError } from "./toast.js";

export function Chart({ runId, name, series, look, color, zoom, isBig, onBig }) {
  const plot = useRef(null);
  useKeys({ ...(isBig && { Escape: onBig }) });
  const [hover, setHover] = useState(null);
  const data = useMemo(() => columnsOf(series, look), [series, look]);
  const isEmpty = data.columns[1].every((value) => value === null);
  const lines = [{ color, width: 1, alpha: look.smoothing ? 0.25 : 0, dots: false }, { color }];
  const saveTable = () => getBlob(runPath(runId, "/metrics/export"), { keys: [name] }).then((blob) => saveBlob(blob, `${runId} ${name}.csv`), sayError);
  const saveChart = () => savePicture(plot.current, `${runId} ${name}.png`, `${name} by ${look.by}`, [{ name: `${knownRun(runId).value.name} (${runId})`, color }]);

  return html`<figure class="chart ${isBig ? "chart-big" : ""}" aria-label="Chart of ${name}">
    <figcaption>
      <span class="chart-name" title=${name}>${name}</span>
      <${Reading} series=${series} data=${data} hover=${hover} look=${look} />
      <span class="chart-tools">
        <button class="bare" aria-label=${isBig ? "Smaller" : "Larger"} aria-pressed=${String(isBig)} onClick=${onBig}><${Icon} name="maximize-2" size="12" /></button>
        <${Menu} label=${html`<span class="hidden">Download ${name}</span>`} icon="download">${(close) => html`
          <button class="menu-item" onClick=${() => (close(), saveChart())}>Picture (PNG)</button>
          <button class="menu-item" onClick=${() => (close(), saveTable())}>All points (CSV)</button>`}
        </${Menu}>
        <a class="chart-ask" href=${askAddress(runId, name)} aria-label="Ask about ${name}" title="Ask about this chart"><${Icon} name="message-square" size="12" /></a>
      </span>
    </figcaption>
    <${Plot} key=${isEmpty} columns=${data.columns} lines=${lines} axis=${look.by} logX=${look.logX} logY=${look.log} zoom=${zoom} height=${isBig ? TALL : undefined}
      label="${name}: last ${number(series.last)} at step ${series.last_step}" onHover=${setHover} onPlot=${(made) => (plot.current = made)} />
    <${ChartNote} data=${data} isEmpty=${isEmpty} />
  </figure>`;
}

// The value under the pointer, else the last one.
function Reading({ series, data, hover, look }) {
  const [xs, values] = data.columns;
  if (hover === null || values[hover] === undefined || values[hover] === null) {
    return html`<span class="chart-value num" title="${series.last} at step ${series.last_step}">${number(series.last)}</span>`;
  }
  return html`<span class="chart-value num" title=${values[hover]}><span class="muted">${placeText(look.by, xs[hover])}</span> ${number(values[hover])}</span>`;
}
