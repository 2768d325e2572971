// Notices of the browser itself, for whoever asked for them: what broke, and what waits for an answer, while this window
// is not looked at. Of several tabs the one that reads the stream speaks.

import { chatAddress, runAddress } from "./router.js";
import { leads } from "./shared_stream.js";
import { forgetCopy, keyOf, recall, remember } from "./storage.js";
import { knownRun, onEvent } from "./store.js";
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
  onEvent((event) => {
    if (noticesAre.value !== "on" || !document.hidden || !leads.value) return;
    const text = textOf(event);
    if (text) show(text, event);
  });
}

function textOf({ type, data, run_id: runId }) {
  if (type === "alert.raised") return data.message;
  if (type === "approval.asked") return data.question;
  if (type !== "run.status" || !["failed", "lost"].includes(data.to)) return "";
  return `${knownRun(runId)?.value.name ?? runId} ${data.to}`;
}

function show(text, { run_id: runId, seq, data }) {
  const notice = new Notification("Labwright", { body: text, tag: String(seq), icon: "assets/favicon.svg" });
  notice.onclick = () => {
    window.focus();
    location.hash = data.session_id ? chatAddress(data.session_id) : runId ? runAddress(runId) : "#/alerts";
    notice.close();
  };
}
