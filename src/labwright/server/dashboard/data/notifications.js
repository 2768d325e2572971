// Browser notifications about failures, alerts and approvals while this window is hidden. Only the tab that reads the
// stream shows them.

import { withoutBidi } from "../format.js";
import { signal } from "../view.js";
import { chatAddress, runAddress } from "./router.js";
import { forgetCopy, keyOf, recall, remember } from "./storage.js";
import { knownRun, loadRun, onEvent } from "./store.js";
import { isLeader } from "./stream.js";

const GATHER_MS = 1000;
const gathered = new Map(); // run id, or event number → events that are not shown yet
const isPossible = "Notification" in window;
const asked = signal(recall("notices", false));
export const notificationState = signal(stateNow()); // on | off | refused | impossible

function stateNow() {
  if (!isPossible) return "impossible";
  if (Notification.permission === "denied") return "refused";
  return asked.value && Notification.permission === "granted" ? "on" : "off";
}

export async function setNotifications(on) {
  if (on && isPossible) await Notification.requestPermission();
  asked.value = on;
  remember("notices", on);
  notificationState.value = stateNow();
}

// A change in one tab applies to all tabs.
addEventListener("storage", ({ key }) => {
  if (key !== keyOf("notices")) return;
  forgetCopy("notices");
  asked.value = recall("notices", false);
  notificationState.value = stateNow();
});

export function startNotifications() {
  onEvent((event) => {
    if (notificationState.value === "on" && document.hidden && isLeader.value && textOf(event)) gather(event);
  });
}

// Group the events of one run: a failing run often raises alerts as well.
function gather(event) {
  const about = event.run_id ?? event.seq;
  if (gathered.has(about)) return gathered.get(about).push(event);
  gathered.set(about, [event]);
  setTimeout(() => notify(about), GATHER_MS);
}

async function notify(about) {
  const events = gathered.get(about);
  gathered.delete(about);
  const [ends, others] = [events.filter(isEnd), events.filter((event) => !isEnd(event))];
  const text = [...ends, ...others].map(textOf).join(" · ");
  show(events[0].run_id ? await nameOf(events[0].run_id) : "Labwright", text, events[0]);
}

const isEnd = ({ type, data }) => type === "run.status" && ["failed", "lost"].includes(data.to);

function textOf(event) {
  if (event.type === "alert.raised") return event.data.message;
  if (event.type === "approval.asked") return event.data.question;
  return isEnd(event) ? `Run ${event.data.to}` : "";
}

async function nameOf(runId) {
  const run = knownRun(runId) ?? (await loadRun(runId).catch(() => null));
  return run?.value.name ?? runId;
}

function show(title, text, { run_id: runId, seq, data }) {
  const notice = new Notification(withoutBidi(title), {
    body: withoutBidi(text),
    tag: String(seq),
    icon: "assets/favicon.svg",
  });
  notice.onclick = () => {
    window.focus();
    location.hash = data.session_id ? chatAddress(data.session_id) : runId ? runAddress(runId) : "#/alerts";
    notice.close();
  };
}
