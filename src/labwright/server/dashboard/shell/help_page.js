// What there is to know: keys, first commands, where to read on.

import { PLACES } from "../data/places.js";
import { useTitle } from "../data/window_title.js";
import { html } from "../view.js";
import { Icon } from "../ui/icon.js";

const KEYS = [
  ["⌘ K or Ctrl K", "find a run, a sweep, a plan or a page; begin a run or a sweep"],
  ["/", "filter the runs, or search a run's output; elsewhere as ⌘ K"],
  ["j, k", "next and previous row"],
  ["Enter", "open the row"],
  ["x", "tick the row, for comparing, stopping, tagging"],
  ["a", "to what can be done with the ticked rows"],
  ["← →, + -, 0", "in a chart: move the reading, zoom, show everything"],
  ["Escape", "back, or close what is open"],
  ["?", "this page"],
];
const COMMANDS = [
  ["labwright run -- python train.py", "start a run"],
  ["labwright sweep sweep.yaml", "many runs from one command and its parameters"],
  ["labwright logs -f last", "follow the output of the newest run"],
  ["labwright compare RUN RUN", "two runs side by side, in the terminal"],
  ["labwright plan save plan.md", "keep a plan"],
  ["labwright token --scope viewer --ttl 8h", "a link for somebody who may only look"],
  ["labwright doctor", "what is wrong with this set-up, if anything"],
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
        "Keys",
        KEYS.map(([key, what]) => [html`<kbd>${key}</kbd>`, what]),
      )}
      ${table(
        "Go to",
        PLACES.map(({ key, label, href }) => [html`<kbd>g ${key}</kbd>`, html`<a href=${href}>${label}</a>`]),
      )}
      ${table(
        "In a terminal, in the project's folder",
        COMMANDS.map(([command, what]) => [html`<code>${command}</code>`, what]),
      )}
      <section class="card">
        <h2>From another machine</h2>
        <p class="muted">The server listens on this machine alone. A tunnel brings it to yours, on any port:</p>
        <pre class="teach">
          ssh -L ${location.port || 80}:127.0.0.1:${location.port || 80} you@machine
        </pre>
      </section>
      <section class="card">
        <h2>For programs</h2>
        <p>
          Everything this page does goes over HTTP.${" "}
          <a href="docs" target="_blank" rel="noreferrer">
            <${Icon} name="book-open" size="14" /> The API, to read and try
          </a>
        </p>
      </section>
    </div>
  </div>`;
}
