// All sweeps, newest first.

import { html, useRef } from "../view.js";
import { useFetched, eventTypes } from "../data/fetched.js";
import { useListKeys } from "../data/keyboard.js";
import { useTitle } from "../data/window_title.js";
import { Message, Problem } from "../ui/message.js";
import { NewButton } from "../work/new_work.js";
import { SweepLine } from "../work/sweep_link.js";

const AT_MOST = 500;

export default function SweepsPage() {
  useTitle("Sweeps");
  const { data, problem, refresh } = useFetched(
    "sweeps",
    { limit: AT_MOST },
    { refreshOn: eventTypes("sweep.", "run.status") },
  );
  const box = useRef(null);
  useListKeys(box);
  if (problem && !data) return html`<${Problem} error=${problem} retry=${refresh} />`;
  if (!data) return html`<div class="loading" aria-busy="true"></div>`;
  return html`<div class="page list-page">
    <header class="page-head">
      <h1>Sweeps</h1>
      <div class="toolbar">
        <${NewButton} name="sweep" />
      </div>
    </header>
    ${
      data.length
        ? html`<ul class="lines" ref=${box}>
          ${data.map((sweep) => html`<${SweepLine} key=${sweep.id} sweep=${sweep} />`)}
        </ul>`
        : html`<${NoSweeps} />`
    }
  </div>`;
}

const NoSweeps = () =>
  html`<${Message} icon="layers" title="No sweeps yet">
    <p class="muted">
      A sweep creates many runs from one command and its parameters. Create one here, or save this as${" "}
      <code>sweep.yaml</code>:
    </p>
    <pre class="teach">${`name: which learning rate
base_command: python train.py
parameters:
  lr: [0.1, 0.01, 0.001]
seeds: 3
metric: {key: loss, goal: min}`}</pre>
    <pre class="teach">labwright sweep sweep.yaml</pre>
  </${Message}>`;
