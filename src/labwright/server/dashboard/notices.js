// Notices of the browser itself, for whoever asked for them: what broke, and what waits for an answer, while this window
// is not looked at. Of several tabs the one that reads the stream speaks.

import { chatAddress, runAddress } from "./router.js";
import { leads } from "./shared_stream.js";
import { forgetCopy, keyOf, recall, remember } from "./storage.js";
import { knownRun, loadRun, onEvent } from "./store.js";
import { signal } from "./ui.js";

const isPossible = "Notification" in window;
const asked = signal(recall("notices", false));
export const noticesAre = signal(stateNow()); // on | off | refused | impossible

function stateNow() {
  if (!isPossible) return "impossible";
  if (Notification.permission === "denied") return "refused";
  return asked.value && Notification.permission === "granted" ? "on" : "off";
}

export async function setNotices(on) {
  if (on && isPossible) await Notification.requestPermission();
  asked.value = on;
  remember("notices", on);
  noticesAre.value = stateNow();
}

// Turned on or off in one tab, they are so in all: the tab that speaks may be another one.
addEventListener("storage", ({ key }) => {
  if (key !== keyOf("notices")) return;
  forgetCopy("notices");
  asked.value = recall("notices", false);
  noticesAre.value = stateNow();
});

export function startNotices() {
  onEvent(async (event) => {
    if (noticesAre.value !== "on" || !document.hidden || !leads.value) return;
    const text = textOf(event);
    if (text) show(event.run_id ? await nameOf(event.run_id) : "Labwright", text, event);
  });
}

function textOf({ type, data }) {
  if (type === "alert.raised") return data.message;
  if (type === "approval.asked") return data.question;
  return type === "run.status" && ["failed", "lost"].includes(data.to) ? `Run ${data.to}` : "";
}

async function nameOf(runId) {
  const run = knownRun(runId) ?? (await loadRun(runId).catch(() => null));
  return run?.value.name ?? runId;
}

function show(title, text, { run_id: runId, seq, data }) {
  const notice = new Notification(title, { body: text, tag: String(seq), icon: "assets/favicon.svg" });
  notice.onclick = () => {
    window.focus();
    location.hash = data.session_id ? chatAddress(data.session_id) : runId ? runAddress(runId) : "#/alerts";
    notice.close();
  };
}
