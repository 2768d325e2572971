// The budget of a loop and how much of it is used.

import { duration, number } from "../format.js";
import { html } from "../view.js";
import { Meter } from "../ui/meter.js";

const FIELDS = {
  runs: ["Max runs", 1],
  gpu_hours: ["Max GPU hours", 1],
  wall_seconds: ["Max hours", 3600],
};

export const BudgetFields = ({ value, onChange, placeholder = {} }) =>
  Object.entries(FIELDS).map(
    ([name, [label]]) =>
      html`<label class="field" key=${name}>
        ${label}
        <input
          type="number"
          min="0"
          step="any"
          placeholder=${placeholder[name] ?? (name === "runs" ? "40" : "no limit")}
          value=${value[name] ?? ""}
          onInput=${(event) => onChange({ ...value, [name]: event.currentTarget.value })}
        />
      </label>`,
  );

// Return the budget in the server's units, without empty fields.
export const budgetOf = (typed) =>
  Object.fromEntries(
    Object.entries(typed)
      .filter(([, value]) => value !== "")
      .map(([name, value]) => [name, Number(value) * FIELDS[name][1]]),
  );

export function BudgetUse({ wild }) {
  const { used, budget } = wild;
  const rows = [
    ["Runs", used.runs, budget.runs, number],
    ["GPU hours", used.gpu_hours, budget.gpu_hours, number],
    ["Time", used.wall_seconds, budget.wall_seconds, duration],
  ].filter(([, spent, most]) => spent || most);
  return html`<section class="card burn" aria-label="Budget">
    <h2>Budget</h2>
    ${rows.map(
      ([label, spent, most, shown]) =>
        html`<div class="gpu-meter" key=${label}>
          <span>${label}</span>
          ${
            most
              ? html`<${Meter} value=${spent / most} label="${label} used" kind=${spent >= most ? "meter-full" : ""} />`
              : html`<span class="meter-none"></span>`
          }
          <span class="num">
            ${shown(spent)}
            ${most ? ` of ${shown(most)}` : ""}
          </span>
        </div>`,
    )}
    <p class="muted small">
      ${
        used.tokens ? `${number(used.tokens)} tokens${used.cost ? `, $${used.cost.toFixed(2)}` : ""}` : "No model used."
      }
    </p>
  </section>`;
}
