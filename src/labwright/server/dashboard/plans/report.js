// The report of an execution, with its charts.

import { html, useEffect, useState } from "../view.js";
import { get } from "../data/api.js";
import { useFetched } from "../data/fetched.js";
import { LINKED } from "../ui/cited_text.js";
import { Icon } from "../ui/icon.js";
import { Markdown } from "../ui/markdown.js";
import { Message, Problem } from "../ui/message.js";
import { filePath } from "./files.js";

const REPORT = "results/report.md";

// The previous report stays until the next one is written. Refresh when a run ends: a retried run may be missing from
// it.
export function PlanReport({ plan, workspace }) {
  const isOver = plan.status === "completed" || plan.status === "failed" || plan.status === "archived";
  const hasReport = isOver || workspace?.files.some(({ path }) => path === REPORT);
  const refreshOn = (event) => event.data.plan_id === plan.id || event.type === "run.status";
  const { data, problem, refresh } = useFetched(
    hasReport ? `plans/${encodeURIComponent(plan.id)}/report` : null,
    {},
    { refreshOn },
  );
  if (!hasReport)
    return html`<${Message} icon="hourglass" title="Still executing">
      <p class="muted">The report is written at the end. The Review tab shows the progress.</p>
    </${Message}>`;
  if (problem && !data) return html`<${Problem} error=${problem} retry=${refresh} />`;
  if (!data) return html`<div class="loading" aria-busy="true"></div>`;
  const picture = (href, alt) => html`<${Picture} plan=${plan} href=${href} alt=${alt} />`;
  return html`${
    data.since &&
    html`<div class="notice-line" role="status">
      <${Icon} name="info" size="14" />
      <span>${data.since}</span>
    </div>`
  }
  <article class="card document" aria-label="Report">
    <${Markdown} text=${data.markdown} picture=${picture} draw=${LINKED} />
  </article>`;
}

// Show the SVG from a data: URL, which has no origin, because it contains names of runs.
function Picture({ plan, href, alt }) {
  const [source, setSource] = useState("");
  useEffect(() => {
    const path = `results/${href}`;
    if (!/^[\w./-]+\.svg$/.test(href) || href.includes("..")) return;
    get(filePath(plan, path)).then(
      ({ content }) => setSource(`data:image/svg+xml;charset=utf-8,${encodeURIComponent(content)}`),
      () => {},
    ); // keep the alternative text
  }, [plan.id, href]);
  return source
    ? html`<img class="report-picture" src=${source} alt=${alt} />`
    : html`<span class="muted">${alt}</span>`;
}
