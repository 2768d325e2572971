// One turn of a conversation: what was said, what was done about it, what was answered, and how it ended.

import { decorated, faultWords, markedCode, plain, withMarks } from "../cited_text.js";
import { planAddress, runAddress, sweepAddress, wildAddress } from "../router.js";
import { html, useMemo } from "../ui.js";
import { Approval } from "./chat_approval.js";
import { Call } from "./chat_call.js";
import { Icon } from "./icon.js";
import { Markdown } from "./markdown.js";
import { RunLink } from "./run_link.js";
import { Ago } from "./time.js";

const ADDRESS = { run: runAddress, sweep: sweepAddress, plan: planAddress };

// The same turn is the same picture: while an answer arrives only the last turn is drawn again.
export function Turn({ turn, evidence }) {
  return useMemo(() => html`<section class="turn" aria-label="Turn ${turn.number}">
    ${turn.said && html`<${Said} said=${turn.said} time=${turn.time} />`}
    ${turn.news && html`<${News} news=${turn.news} />`}
    ${turn.steps.map((step) => html`<${Step} key=${step.key} step=${step} evidence=${evidence} />`)}
    ${!turn.end && !turn.steps.some(isAlive) && html`<p class="chat-busy muted"><span class="pulse" aria-hidden="true"></span>Working…</p>`}
    <${End} end=${turn.end} />
  </section>`, [turn, turn.end ? null : evidence]);
}

const isAlive = (step) => step.isGrowing || step.approval?.status === "pending";

function Said({ said, time }) {
  return html`<div class="said"><p class="said-text">${mentioned(said.text, said.mentions)}</p>
    <p class="muted small">${said.by?.split(":")[0] ?? "person"}${said.mode === "agent" ? "" : ` · ${said.mode} mode`} · <${Ago} time=${time} /></p></div>`;
}

// Mentions lead to what they are; all else is the text as it was typed.
function mentioned(text, mentions = []) {
  const known = new Map(mentions.map((one) => [one.mention, one]));
  return text.split(/(@[A-Za-z0-9][\w.-]*\w|@[A-Za-z0-9])/).map((part) => {
    const one = known.get(part);
    if (!one) return part;
    const words = one.text;
    return one.id ? html`<a class="mention" href=${ADDRESS[one.kind](one.id)} title=${words}>${part}</a>` : html`<span class="mention mention-unknown" title=${words}>${part}</span>`;
  });
}

const News = ({ news }) => html`<div class="notice-line"><${Icon} name="bell" size="14" /><span>${news.flatMap(({ happened }) => happened).map(
  (one, at) => html`${at > 0 && ", "}<a key=${at} href=${one.sweep_id ? sweepAddress(one.sweep_id) : runAddress(one.run_id)}>${one.name ?? one.run_id ?? one.sweep_id}</a> ${one.status}`)}</span></div>`;

function Step({ step, evidence }) {
  if (step.kind === "answer") return html`<${Answer} step=${step} evidence=${evidence} />`;
  if (step.kind === "thinking") return html`<${Thinking} step=${step} />`;
  if (step.kind === "call") return html`<${Call} step=${step} /> ${step.approval && html`<${Approval} approval=${step.approval} />`}`;
  if (step.kind === "approval") return html`<${Approval} approval=${step.approval} />`;
  return html`<div class="notice-line"><${Icon} name="info" size="14" /><span>${step.text}</span></div>`;
}

function Answer({ step, evidence }) {
  const text = useMemo(() => withMarks(step.text, step.marks), [step.text, step.marks]);
  const draw = { words: (words) => decorated(words, { marks: step.marks, evidence }), source: plain, pieces: () => markedCode(step.marks) };
  return html`<article class="answer" aria-busy=${step.isGrowing ? "true" : undefined}><${Markdown} text=${text} draw=${draw} />
    ${step.marks.length > 0 && html`<${Unsupported} marks=${step.marks} />`}</article>`;
}

// Each with its reason: where a finger points there is no hover, and not all of a text is drawn, such as the title of a link.
const Unsupported = ({ marks }) => html`<details class="unsupported-note small"><summary><${Icon} name="triangle-alert" size="14" />${marks.length === 1 ? "One claim is" : `${marks.length} claims are`} not supported by what was looked at; marked above. <span class="muted">Why?</span></summary>
  <ul>${marks.map((mark) => html`<li key=${`${mark.start} ${mark.detail}`}><code>${mark.text}</code> <span class="muted">${faultWords(mark)}</span></li>`)}</ul></details>`;

const Thinking = ({ step }) => html`<details class="fold"><summary><${Icon} name="lightbulb" size="14" /><span>${step.isGrowing ? "Thinking…" : "Thought"}</span></summary><p class="fold-text">${step.text}</p></details>`;

function End({ end }) {
  if (!end || end.why === "done") return end?.cut ? html`<p class="notice-line">The answer was cut off at the longest that the model may give.</p>` : null;
  if (end.wild_id) return html`<div class="notice-line"><${Icon} name="compass" size="14" /><span>The loop <a href=${wildAddress(end.wild_id)}>${end.wild_id}</a> goes on by itself. What you say here steers it.</span></div>`;
  if (end.why === "waiting") return html`<div class="notice-line"><${Icon} name="hourglass" size="14" /><span>It waits for ${waitedFor(end.wait_for)} and goes on by itself then. No model is asked meanwhile.</span></div>`;
  if (end.why === "stopped") return html`<div class="notice-line"><${Icon} name="circle-slash" size="14" /><span>Stopped by ${end.by ?? "somebody"}. Runs that it started go on.</span></div>`;
  if (end.why === "rounds") return html`<div class="notice-line"><${Icon} name="triangle-alert" size="14" /><span>It used all ${end.rounds} rounds of one turn. Say “go on” to let it.</span></div>`;
  const { message = "It could not go on.", hint = "" } = end.error ?? {};
  return html`<div class="notice-line notice-bad" role="alert"><${Icon} name="octagon-alert" size="14" /><span>${message}${hint && html` <span class="muted">${hint}</span>`}</span></div>`;
}

function waitedFor(wait) {
  if (wait.sweep_id) return html`<a href=${sweepAddress(wait.sweep_id)}>${wait.sweep_id}</a>`;
  return wait.run_ids.map((id, at) => html`${at > 0 && (wait.any_of_them ? " or " : " and ")}<${RunLink} key=${id} id=${id} />`);
}

