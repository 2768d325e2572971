// A run's details: command, parameters, environment, facts, notes, and its code.

import { bytes, counted, duration, exactTime, number, text } from "../format.js";
import { html, useEffect, useState } from "../view.js";
import { isAborted, runPath } from "../data/api.js";
import { useFetched } from "../data/fetched.js";
import { runAddress } from "../data/router.js";
import { mayWrite } from "../data/session.js";
import { changeRun, knownRun, loadRun } from "../data/store.js";
import { Code } from "../ui/code.js";
import { useDraft } from "../ui/drafts.js";
import { Icon } from "../ui/icon.js";
import { Message, Problem } from "../ui/message.js";
import { showError } from "../ui/toast.js";
import { useVerb } from "../ui/verb.js";

export function RunDetails({ run }) {
  const names = [...Object.keys(run.env), ...run.secret_env].sort();
  return html`<section class="details" aria-label="Details">
    ${
      run.warnings.length > 0 &&
      html`<div class="card">
        <h2>Warnings</h2>
        <ul class="warnings">
          ${run.warnings.map(
            (warning) =>
              html`<li>
                <${Icon} name="triangle-alert" size="14" />
                ${warning}
              </li>`,
          )}
        </ul>
      </div>`
    }
    <div class="card">
      <h2>Command</h2>
      <${Code} text=${run.command} language="bash" label="Command" />
      <p class="muted small">
        in <code>${run.workdir}</code>
      </p>
    </div>
    <${Parameters} run=${run} />
    <div class="card">
      <h2>Environment</h2>
      ${
        names.length
          ? html`<p class="names">
            ${names.map(
              (name) =>
                html`<code class="tag" key=${name} title=${run.env[name] ?? "secret"}>
                  ${name}
                </code>${" "}`,
            )}
          </p>`
          : html`<p class="muted">Same as the server's environment.</p>`
      }
    </div>
    <div class="card">
      <h2>Facts</h2>
      <${Pairs} pairs=${factsOf(run)} />
    </div>
    <${Notes} run=${run} />
  </section>`;
}

const Pairs = ({ pairs }) =>
  html`<table class="pairs">
    <tbody>
      ${pairs.map(
        ([name, value]) =>
          html`<tr key=${name}>
            <th scope="row">${name}</th>
            <td>${text(value)}</td>
          </tr>`,
      )}
    </tbody>
  </table>`;

const withSeed = (run) => ({ ...run.params, ...(run.seed !== null && { seed: run.seed }) });

function Parameters({ run }) {
  const sweep = useFetched(run.sweep_id && `sweeps/${encodeURIComponent(run.sweep_id)}`);
  const best = sweep.data?.best?.run_id;
  const choices = [
    ["", "This run only"],
    run.parent_run_id && [run.parent_run_id, "Compare with parent"],
    best && best !== run.id && [best, "Compare with the sweep's best"],
  ].filter(Boolean);
  const [otherId, setOtherId] = useState("");
  const other = useRun(otherId);
  const mine = withSeed(run);
  const theirs = other ? withSeed(other) : {};
  const names = [...new Set([...Object.keys(mine), ...Object.keys(theirs)])];
  return html`<div class="card">
    <div class="section-head">
      <h2>Parameters</h2>
      ${
        choices.length > 1 &&
        html`<select aria-label="Compare parameters with" onChange=${(event) => setOtherId(event.currentTarget.value)}>
          ${choices.map(
            ([id, label]) =>
              html`<option value=${id} selected=${id === otherId}>
                ${label}
              </option>`,
          )}
        </select>`
      }
    </div>
    ${
      !names.length &&
      html`<p class="muted">
        None. Record one with <code>labwright run --param lr=0.1 -- …</code>.
      </p>`
    }
    ${
      names.length > 0 &&
      html`<table class="pairs">
        ${
          other &&
          html`<thead>
            <tr>
              <th></th>
              <th scope="col">this run</th>
              <th scope="col">
                <a href=${runAddress(other.id)}>${other.name}</a>
              </th>
            </tr>
          </thead>`
        }
        <tbody>
          ${names.map(
            (name) =>
              html`<tr key=${name} class=${other && !same(mine[name], theirs[name]) ? "differs" : ""}>
                <th scope="row" title=${name}>
                  ${name}
                </th>
                <td>${shown(mine[name])}</td>
                ${other && html`<td>${shown(theirs[name])}</td>`}
              </tr>`,
          )}
          ${
            other &&
            Object.keys(run.summary)
              .filter((key) => !key.startsWith("system/"))
              .map(
                (key) =>
                  html`<tr key="m ${key}">
                    <th scope="row" title=${key}>
                      ${key}
                    </th>
                    <td class="num">${number(run.summary[key].last)}</td>
                    <td class="num">${number(other.summary[key]?.last)}</td>
                  </tr>`,
              )
          }
        </tbody>
      </table>`
    }
  </div>`;
}

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
const shown = (value) => (value === undefined ? html`<span class="muted">none</span>` : text(value));

function useRun(id) {
  const [, draw] = useState(0);
  useEffect(() => {
    if (!id || knownRun(id)) return undefined;
    const abort = new AbortController();
    loadRun(id, abort.signal).then(
      () => draw((count) => count + 1),
      (error) => !isAborted(error) && showError(error),
    );
    return () => abort.abort();
  }, [id]);
  return id ? knownRun(id)?.value : undefined;
}

function factsOf(run) {
  const { usage, snapshot } = run;
  return [
    ["queued", exactTime(run.queued_at)],
    ["started", exactTime(run.started_at)],
    ["ended", exactTime(run.ended_at)],
    ["CPU time", usage.cpu_seconds === undefined ? "" : duration(usage.cpu_seconds)],
    ["peak memory", usage.max_memory_mb ? bytes(usage.max_memory_mb * 1e6) : ""],
    [
      "git commit",
      snapshot?.git_commit ? `${snapshot.git_commit.slice(0, 8)}${snapshot.dirty ? " (modified)" : ""}` : "",
    ],
    ["code snapshot", snapshot ? snapshot.hash.slice(0, 8) : ""],
    ["launcher", run.launcher ?? ""],
    ["Slurm job", run.slurm_job_id ?? ""],
    ["GPUs", run.gpu_uuids.join(", ")],
    ["folder", run.run_dir ?? ""],
  ].filter(([, value]) => value);
}

function Notes({ run }) {
  const [draft, setDraft, dropDraft] = useDraft(`notes ${run.id}`);
  const [busy, act] = useVerb();
  const save = (event) => {
    event.preventDefault();
    act(() => changeRun(run.id, { notes: draft.text }).then(() => setDraft(null)), { done: "Notes saved." });
  };
  if (!draft) {
    return html`<div class="card">
      <div class="section-head">
        <h2>Notes</h2>
        ${
          mayWrite() &&
          html`<button onClick=${() => setDraft({ text: run.notes, before: run.notes })}>
            <${Icon} name="pencil" size="14" />
            Edit notes
          </button>`
        }
      </div>
      ${run.notes ? html`<p class="notes">${run.notes}</p>` : html`<p class="muted">No notes.</p>`}
    </div>`;
  }
  return html`<form class="card" onSubmit=${save}>
    <h2>Notes</h2>
    <textarea
      class="notes-field"
      rows="6"
      aria-label="Notes"
      value=${draft.text}
      onInput=${(event) => setDraft({ ...draft, text: event.currentTarget.value })}
    ></textarea>
    <div class="dialog-verbs">
      <button type="button" onClick=${dropDraft}>
        Cancel
      </button>
      <button class="primary" disabled=${busy}>
        Save notes
      </button>
    </div>
  </form>`;
}

// The run's code snapshot, compared with the current files.
export function RunCode({ run }) {
  const { data, problem, refresh } = useFetched(run.snapshot && runPath(run.id, "/diff"));
  if (!run.snapshot)
    return html`<${Message} icon="file-code" title="No code snapshot">
      <p class="muted">The run's folder is outside the project, or the run was logged from elsewhere.</p>
    </${Message}>`;
  if (problem && !data) return html`<${Problem} error=${problem} retry=${refresh} />`;
  if (!data) return html`<div class="loading" aria-busy="true"></div>`;
  const { git_commit: commit, dirty, hash, files } = run.snapshot;
  const same = !data.added.length && !data.removed.length && !data.changed.length;
  return html`<section class="stack" aria-label="Code">
    <p class="muted">
      Snapshot <code title=${hash}>${hash.slice(0, 8)}</code> of ${counted(files, "file")}
      ${
        commit &&
        html`, on commit <code title=${commit}>${commit.slice(0, 8)}</code>
        ${dirty ? " with uncommitted changes" : ""}`
      }
      .
      ${same ? " The project files have not changed since." : " The project files have changed since:"}
    </p>
    ${
      !same &&
      html`<${FileNames} title="new" names=${data.added} />
      <${FileNames} title="deleted" names=${data.removed} />
      <${FileNames} title="changed" names=${data.changed} />
      <${Code} text=${data.text} language="diff" label="Changes since submit" />
      ${
        data.truncated &&
        html`<p class="muted">
          The diff is cut off. <code>labwright diff ${run.id}</code> shows all of it.
        </p>`
      }`
    }
  </section>`;
}

const FileNames = ({ title, names }) =>
  names.length > 0 &&
  html`<p class="names">
    ${title}:${" "}
    ${names.map(
      (name) =>
        html`<code class="tag" key=${name}>
          ${name}
        </code>${" "}`,
    )}
  </p>`;
