// One turn of a conversation: the message, the tool calls, the response and how it ended.

import { html, useMemo, useState } from "../view.js";
import { planAddress, runAddress, sweepAddress, wildAddress } from "../data/router.js";
import { decorated, faultText, markedCode, plain, withMarks } from "../ui/cited_text.js";
import { Code } from "../ui/code.js";
import { Icon } from "../ui/icon.js";
import { Markdown } from "../ui/markdown.js";
import { Ago } from "../ui/time.js";
import { Approval } from "../work/approval.js";
import { RunLink } from "../work/run_link.js";

const ADDRESS = { run: runAddress, sweep: sweepAddress, plan: planAddress };

// Memoized: while a response arrives, only the last turn is drawn again.
export function Turn({ turn, evidence }) {
  return useMemo(
    () =>
      html`<section class="turn" aria-label="Turn ${turn.number}">
        ${turn.said && html`<${Said} said=${turn.said} time=${turn.time} />`}
        ${turn.news && html`<${News} news=${turn.news} />`}
        ${turn.steps.map((step) => html`<${Step} key=${step.key} step=${step} evidence=${evidence} />`)}
        ${
          !turn.end &&
          !turn.steps.some(isAlive) &&
          html`<p class="chat-busy muted">
            <span class="pulse" aria-hidden="true"></span>Working…
          </p>`
        }
        <${End} end=${turn.end} />
      </section>`,
    [turn, turn.end ? null : evidence],
  );
}

const isAlive = (step) => step.isGrowing || step.approval?.status === "pending";

function Said({ said, time }) {
  return html`<div class="said">
    <p class="said-text">${mentioned(said.text, said.mentions)}</p>
    <p class="muted small">
      ${said.by?.split(":")[0] ?? "person"}
      ${said.mode === "agent" ? "" : ` · ${said.mode} mode`} · <${Ago} time=${time} />
    </p>
  </div>`;
}

// Link the mentions in a message.
function mentioned(text, mentions = []) {
  const known = new Map(mentions.map((one) => [one.mention, one]));
  return text.split(/(@[A-Za-z0-9][\w.-]*\w|@[A-Za-z0-9])/).map((part) => {
    const one = known.get(part);
    if (!one) return part;
    const text = one.text;
    return one.id
      ? html`<a class="mention" href=${ADDRESS[one.kind](one.id)} title=${text}>
        ${part}
      </a>`
      : html`<span class="mention mention-unknown" title=${text}>
        ${part}
      </span>`;
  });
}

const News = ({ news }) =>
  html`<div class="notice-line">
    <${Icon} name="bell" size="14" />
    <span>
      ${news
        .flatMap(({ happened }) => happened)
        .map(
          (one, at) =>
            html`${at > 0 && ", "}
            <a key=${at} href=${one.sweep_id ? sweepAddress(one.sweep_id) : runAddress(one.run_id)}>
              ${one.name ?? one.run_id ?? one.sweep_id}
            </a>${" "}
            ${one.status}`,
        )}
    </span>
  </div>`;

function Step({ step, evidence }) {
  if (step.kind === "answer") return html`<${Answer} step=${step} evidence=${evidence} />`;
  if (step.kind === "thinking") return html`<${Thinking} step=${step} />`;
  if (step.kind === "call")
    return html`<${Call} step=${step} /> ${step.approval && html`<${Approval} approval=${step.approval} />`}`;
  if (step.kind === "approval") return html`<${Approval} approval=${step.approval} />`;
  return html`<div class="notice-line">
    <${Icon} name="info" size="14" />
    <span>${step.text}</span>
  </div>`;
}

function Answer({ step, evidence }) {
  const text = useMemo(() => withMarks(step.text, step.marks), [step.text, step.marks]);
  const draw = {
    text: (text) => decorated(text, { marks: step.marks, evidence }),
    source: plain,
    pieces: () => markedCode(step.marks),
  };
  return html`<article class="answer" aria-busy=${step.isGrowing ? "true" : undefined}>
    <${Markdown} text=${text} draw=${draw} />
    ${step.marks.length > 0 && html`<${Unsupported} marks=${step.marks} />`}
  </article>`;
}

// List the reasons: touch screens have no hover, and some text is not drawn, such as link titles.
const Unsupported = ({ marks }) =>
  html`<details class="unsupported-note small">
    <summary>
      <${Icon} name="triangle-alert" size="14" />
      ${marks.length === 1 ? "One claim is" : `${marks.length} claims are`} not supported by the evidence (marked
      above).${" "}
      <span class="muted">Why?</span>
    </summary>
    <ul>
      ${marks.map(
        (mark) =>
          html`<li key="${mark.start} ${mark.detail}">
            <code>${mark.text}</code> <span class="muted">${faultText(mark)}</span>
          </li>`,
      )}
    </ul>
  </details>`;

const Thinking = ({ step }) =>
  html`<details class="fold">
    <summary>
      <${Icon} name="lightbulb" size="14" />
      <span>${step.isGrowing ? "Thinking…" : "Thoughts"}</span>
    </summary>
    <p class="fold-text">${step.text}</p>
  </details>`;

function End({ end }) {
  if (!end || end.why === "done")
    return end?.cut ? html`<p class="notice-line">The response was cut off at the model's length limit.</p>` : null;
  if (end.wild_id)
    return html`<div class="notice-line">
      <${Icon} name="compass" size="14" />
      <span>
        The loop <a href=${wildAddress(end.wild_id)}>${end.wild_id}</a> continues by itself. Your messages here
        steer it.
      </span>
    </div>`;
  if (end.why === "waiting")
    return html`<div class="notice-line">
      <${Icon} name="hourglass" size="14" />
      <span>Waiting for ${waitedFor(end.wait_for)}, then it continues. No model is called meanwhile.</span>
    </div>`;
  if (end.why === "stopped")
    return html`<div class="notice-line">
      <${Icon} name="circle-slash" size="14" />
      <span>Stopped by ${end.by ?? "a user"}. Its runs continue.</span>
    </div>`;
  if (end.why === "rounds")
    return html`<div class="notice-line">
      <${Icon} name="triangle-alert" size="14" />
      <span>The turn reached its limit of ${end.rounds} rounds. Send “continue” to go on.</span>
    </div>`;
  const { message = "The assistant could not continue.", hint = "" } = end.error ?? {};
  return html`<div class="notice-line notice-bad" role="alert">
    <${Icon} name="octagon-alert" size="14" />
    <span>
      ${message}
      ${hint && html`${" "}<span class="muted">${hint}</span>`}
    </span>
  </div>`;
}

function waitedFor(wait) {
  if (wait.sweep_id) return html`<a href=${sweepAddress(wait.sweep_id)}>${wait.sweep_id}</a>`;
  return wait.run_ids.map(
    (id, at) =>
      html`${at > 0 && (wait.any_of_them ? " or " : " and ")}
      <${RunLink} key=${id} id=${id} />`,
  );
}

// A tool call, folded to one line: its arguments and its result.

const SHORT = 70;

function Call({ step }) {
  const [open, setOpen] = useState(false);
  const { name, arguments: given, result, approval } = step;
  const [icon, kind, word] = stateOf(result, approval);
  return html`<details class="fold" open=${open} onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>
      <${Icon} name="wrench" size="14" />
      <span class="fold-name">${name.replaceAll("_", " ")}</span>
      <span class="muted fold-brief">${brief(given)}</span>
      <span class="status status-${kind}">
        <${Icon} name=${icon} size="14" />
        <span class="hidden">${word}</span>
      </span>
    </summary>
    ${
      open &&
      html`<div class="fold-body">
        <h3>Arguments</h3>
        <${Code} text=${pretty(given)} language="json" label="Arguments of ${name}" />
        ${
          result &&
          html`<h3>Result</h3>
          <${Code} text=${prettyText(result.text)} language="json" label="Result of ${name}" />`
        }
      </div>`
    }
  </details>`;
}

function stateOf(result, approval) {
  if (result) return result.ok ? ["check", "finished", "done"] : ["circle-x", "failed", "refused"];
  return approval?.status === "pending"
    ? ["hourglass", "waiting", "waiting for approval"]
    : ["loader", "running", "running"];
}

const pretty = (value) => JSON.stringify(value, null, 2);

function prettyText(text) {
  try {
    return pretty(JSON.parse(text));
  } catch {
    return text; // cut off, so it is not valid JSON
  }
}

function brief(given) {
  const text = Object.entries(given ?? {})
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");
  return text.length > SHORT ? `${text.slice(0, SHORT)}…` : text;
}
