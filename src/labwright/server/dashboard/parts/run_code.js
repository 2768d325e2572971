// The code of a run against the files of now.

import { runPath } from "../api.js";
import { useFetched } from "../fetched.js";
import { counted } from "../format.js";
import { html } from "../ui.js";
import { Code } from "./code.js";
import { Message, Problem } from "./message.js";

export function RunCode({ run }) {
  const { data, problem, refresh } = useFetched(run.snapshot && runPath(run.id, "/diff"));
  if (!run.snapshot) return html`<${Message} icon="file-code" title="No code was kept with this run"><p class="muted">Its folder is not the project's, or it was logged from outside.</p></${Message}>`;
  if (problem && !data) return html`<${Problem} error=${problem} retry=${refresh} />`;
  if (!data) return html`<div class="loading" aria-busy="true"></div>`;
  const { git_commit: commit, dirty, hash, files } = run.snapshot;
  const same = !data.added.length && !data.removed.length && !data.changed.length;
  return html`<section class="stack" aria-label="Code">
    <p class="muted">Snapshot <code title=${hash}>${hash.slice(0, 8)}</code> of ${counted(files, "file")}${commit && html`, on commit <code title=${commit}>${commit.slice(0, 8)}</code>${dirty ? " with changes that were not committed" : ""}`}.
      ${same ? " The project's files are still the same." : " This is what changed in the project since the run was submitted:"}</p>
    ${!same && html`<${FileNames} title="new" names=${data.added} /><${FileNames} title="gone" names=${data.removed} /><${FileNames} title="changed" names=${data.changed} />
      <${Code} text=${data.text} language="diff" label="Changes since submit" />
      ${data.truncated && html`<p class="muted">More changed than is shown. <code>labwright diff ${run.id}</code> has all of it.</p>`}`}
  </section>`;
}

const FileNames = ({ title, names }) => names.length > 0 && html`<p class="names">${title}: ${names.map((name) => html`<code class="tag" key=${name}>${name}</code> `)}</p>`;
