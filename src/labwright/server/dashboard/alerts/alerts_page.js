// Open and answered alerts.

import { html, useEffect, useState } from "../view.js";
import { get } from "../data/api.js";
import { pendingAlerts } from "../data/store.js";
import { useTitle } from "../data/window_title.js";
import { Message } from "../ui/message.js";
import { Alert } from "../work/alert.js";

export default function AlertsPage() {
  const [answered, setAnswered] = useState([]);
  const open = pendingAlerts.value;
  const openIds = open.map((alert) => alert.id).join();
  useTitle("Alerts");
  useEffect(() => {
    const abort = new AbortController();
    get("alerts", { status: "resolved", limit: 100 }, abort.signal).then(setAnswered, () => {});
    return () => abort.abort();
  }, [openIds]);

  return html`<div class="page alerts-page">
    <header class="page-head">
      <h1>Alerts</h1>
    </header>
    <section class="alerts" aria-label="Open">
      ${open.map((alert) => html`<${Alert} key=${alert.id} alert=${alert} withRun />`)}
      ${
        !open.length &&
        html`<${Message} icon="bell" title="No open alerts">
          <p class="muted">A script raises an alert with:</p>
          <pre class="teach">labwright.alert("Diverged", text="loss is NaN", level="ERROR")</pre>
        </${Message}>`
      }
    </section>
    ${
      answered.length > 0 &&
      html`<section class="alerts" aria-label="Answered">
        <h2>Answered</h2>
        ${answered.map((alert) => html`<${Alert} key=${alert.id} alert=${alert} withRun />`)}
      </section>`
    }
  </div>`;
}
