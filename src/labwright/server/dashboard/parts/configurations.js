// The table by configuration: mean ± std over seeds, best first.

import { getBlob } from "../api.js";
import { saveBlob } from "../downloads.js";
import { number, text } from "../format.js";
import { compareAddress } from "../router.js";
import { html, useState } from "../ui.js";
import { Icon } from "./icon.js";
import { StatusBar } from "./meter.js";
import { sayError } from "./toast.js";

const AT_ONCE = 100;

export function Configurations({ sweep, results }) {
  const [limit, setLimit] = useState(AT_ONCE);
  if (!results) return html`<div class="loading" aria-busy="true"></div>`;
  const { configurations } = results;
  const names = [...new Set(configurations.flatMap(({ params }) => Object.keys(params)))];
  const save = () => getBlob(`sweeps/${encodeURIComponent(sweep.id)}/results/export`, { format: "csv" }).then((blob) => saveBlob(blob, `${sweep.name}.csv`), sayError);
  const best = configurations.slice(0, 8).flatMap(({ run_ids: ids }) => ids).slice(0, 50);
  return html`<section class="stack" aria-label="Configurations">
    <div class="controls"><a href=${compareAddress(best)}>Compare the best</a><button onClick=${save}><${Icon} name="download" size="14" />Download (CSV)</button></div>
    <div class="wide" tabindex="0" role="region" aria-label="Table by configuration"><table class="grid-table">
      <thead><tr><th scope="col" class="num">#</th>${names.map((name) => html`<th scope="col" class="num" key=${name}>${name}</th>`)}<th scope="col" class="num">${sweep.metric.key}</th><th scope="col" class="num">std</th><th scope="col" class="num">n</th><th scope="col">Runs</th><th></th></tr></thead>
      <tbody>${configurations.slice(0, limit).map((one, at) => html`<tr key=${one.config_hash} class=${at === 0 && one.mean !== null ? "best" : ""}>
        <td class="num muted">${at + 1}</td>
        ${names.map((name) => html`<td class="num" key=${name}>${typeof one.params[name] === "number" ? number(one.params[name]) : one.params[name] === undefined ? "" : text(one.params[name])}</td>`)}
        <td class="num" title=${one.mean}><strong>${number(one.mean)}</strong></td><td class="num muted" title=${one.std}>${one.n > 1 ? `± ${number(one.std)}` : ""}</td><td class="num">${one.n}</td>
        <td><${StatusBar} progress=${{ total: one.run_ids.length, ...one.progress }} /></td>
        <td><a href=${compareAddress(one.run_ids)} aria-label="Runs of configuration ${at + 1}">Runs</a></td></tr>`)}</tbody></table></div>
    ${configurations.length > limit && html`<button onClick=${() => setLimit(limit + AT_ONCE)}>Show more of ${configurations.length - limit}</button>`}
    ${results.total > configurations.length && html`<p class="muted">The best ${configurations.length} of ${results.total}. The download has all.</p>`}
  </section>`;
}
