// A goal in plain words becomes a plan to look at. Nothing runs before somebody has approved it.

import { post } from "../data/api.js";
import { useDraft } from "../ui/drafts.js";
import { go, planAddress } from "../data/router.js";
import { mayWrite } from "../data/session.js";
import { html, useState } from "../view.js";
import { Icon } from "../ui/icon.js";
import { sayError } from "../ui/toast.js";

const TITLE = 80;

export function GoalBox() {
  const [goal, setGoal] = useDraft("goal", "");
  const [busy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    const words = goal.trim();
    if (!words) return;
    setBusy(true);
    try {
      const plan = await post("plans", { title: words.split("\n")[0].slice(0, TITLE), goal: words, compile: {} });
      setGoal("");
      go(planAddress(plan.id));
    } catch (error) {
      sayError(error);
      setBusy(false);
    }
  };
  if (!mayWrite()) return null;
  return html`<form class="goal-box" onSubmit=${submit}>
    <label class="goal-field">
      <${Icon} name="target" />
      <input
        type="text"
        aria-label="Goal"
        placeholder="What do you want to find out? For example: lr 0.1 and 0.01, 3 seeds, metric val_acc"
        value=${goal}
        maxlength="4000"
        onInput=${(event) => setGoal(event.currentTarget.value)}
      />
    </label>
    <button class="primary" disabled=${busy || !goal.trim()}>
      Make a plan
    </button>
  </form>`;
}
