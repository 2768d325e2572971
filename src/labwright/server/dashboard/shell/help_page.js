// Help: keyboard shortcuts, commands, links.

import { html } from "../view.js";
import { PAGES } from "../data/pages.js";
import { useTitle } from "../data/window_title.js";
import { Icon } from "../ui/icon.js";

const KEYS = [
  ["⌘ K or Ctrl K", "find a run, sweep, plan or page; create a run or sweep"],
  ["/", "filter runs or search output; elsewhere like ⌘ K"],
  ["j, k", "next and previous row"],
  ["Enter", "open the row"],
  ["x", "select the row"],
  ["a", "go to the actions for selected rows"],
  ["← →, + -, 0", "in a chart: move the cursor, zoom, reset the zoom"],
  ["Escape", "back, or close a dialog"],
  ["?", "this page"],
];
const COMMANDS = [
  ["labwright run -- python train.py", "start a run"],
  ["labwright sweep sweep.yaml", "start many runs from one command"],
  ["labwright logs -f last", "follow the output of the newest run"],
  ["labwright compare RUN RUN", "compare runs in the terminal"],
  ["labwright plan save plan.md", "save a plan"],
  ["labwright token --scope viewer --ttl 8h", "create a read-only link"],
  ["labwright doctor", "check the installation"],
];

export default function HelpPage() {
  useTitle("Help");
  const table = (title, rows) =>
    html`<section class="card">
      <h2>${title}</h2>
      <table class="pairs help">
        <tbody>
          ${rows.map(
            ([left, right]) =>
              html`<tr key=${left}>
                <th scope="row">${left}</th>
                <td>${right}</td>
              </tr>`,
          )}
        </tbody>
      </table>
    </section>`;
  return html`<div class="page run-page">
    <h1>Help</h1>
    <div class="help-grid">
      ${table(
        "Keyboard shortcuts",
        KEYS.map(([key, what]) => [html`<kbd>${key}</kbd>`, what]),
      )}
      ${table(
        "Go to",
        PAGES.map(({ key, label, href }) => [html`<kbd>g ${key}</kbd>`, html`<a href=${href}>${label}</a>`]),
      )}
      ${table(
        "Terminal commands",
        COMMANDS.map(([command, what]) => [html`<code>${command}</code>`, what]),
      )}
      <section class="card">
        <h2>Remote access</h2>
        <p class="muted">The server listens on this machine only. Use a tunnel from another machine:</p>
        <pre class="teach">
          ssh -L ${location.port || 80}:127.0.0.1:${location.port || 80} you@machine
        </pre>
      </section>
      <section class="card">
        <h2>API</h2>
        <p>
          The dashboard uses the HTTP API.${" "}
          <a href="docs" target="_blank" rel="noreferrer">
            <${Icon} name="book-open" size="14" /> API documentation
          </a>
        </p>
      </section>
    </div>
  </div>`;
}
