// Files of a run. Images are fetched with the token and shown from memory; everything else is text or a download, so
// that a file of a run never becomes a page on our origin.

import { bytes } from "../format.js";
import { html, useEffect, useState } from "../view.js";
import { getFirstBytes, getBlob, isAborted, runPath, saveBlob } from "../data/api.js";
import { useFetched, eventTypes } from "../data/fetched.js";
import { onHint } from "../data/store.js";
import { Code, languageOf } from "../ui/code.js";
import { Dialog } from "../ui/dialog.js";
import { Icon } from "../ui/icon.js";
import { Message, Problem } from "../ui/message.js";
import { showError } from "../ui/toast.js";
import { useVerb } from "../ui/verb.js";

const PICTURES = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  svg: "image/svg+xml",
};
const SHOWN_AS_TEXT = 300_000;
const LARGEST_TILE = 4_000_000; // larger images are fetched when they are opened
const AT_ONCE = 60;
const HERE = "artifacts/";
const EXAMPLE = `labwright.log({"samples": labwright.Image("out.png")}, step=step)
labwright.save("model.pt")`;

const suffixOf = (path) => path.split(".").pop().toLowerCase();
const isPicture = (path) => Object.hasOwn(PICTURES, suffixOf(path));
const fileName = (path) => path.split("/").pop();

export function Artifacts({ run }) {
  const { data, problem, refresh } = useFetched(
    runPath(run.id, "/artifacts"),
    {},
    { refreshOn: (event) => event.run_id === run.id && eventTypes("run.")(event) },
  );
  const [open, setOpen] = useState(null);
  const [limit, setLimit] = useState(AT_ONCE);
  useEffect(() => onHint("metrics", run.id, () => refresh()), [run.id, refresh]);
  if (problem && !data) return html`<${Problem} error=${problem} retry=${refresh} />`;
  if (!data) return html`<div class="loading" aria-busy="true"></div>`;
  if (!data.length)
    return html`<${Message} icon="image" title="No files">
      <p class="muted">A script saves an image or a file with:</p>
      <pre class="teach">${EXAMPLE}</pre>
    </${Message}>`;
  const found = [...data].reverse();
  return html`<section aria-label="Artifacts">
    <ul class="artifacts">
      ${found
        .slice(0, limit)
        .map((item) => html`<${Tile} key="${item.path} ${item.step}" run=${run} item=${item} onOpen=${setOpen} />`)}
    </ul>
    ${
      found.length > limit &&
      html`<button onClick=${() => setLimit(limit + AT_ONCE)}>
        Show ${Math.min(AT_ONCE, found.length - limit)} more
      </button>`
    }
    ${open && html`<${Viewer} run=${run} item=${open} onClose=${() => setOpen(null)} />`}
  </section>`;
}

const FileIcon = () =>
  html`<span class="artifact-icon">
    <${Icon} name="file-text" size="24" />
  </span>`;

function Tile({ run, item, onOpen }) {
  const isHere = item.size !== null;
  const about = html`<span class="artifact-name" title=${item.path}>
    ${item.caption || item.key}
  </span>
  <span class="muted small">${isHere ? `step ${item.step} · ${bytes(item.size)}` : item.path}</span>`;
  if (!isHere)
    return html`<li class="artifact">
      <span class="artifact-icon">
        <${Icon} name="file" size="24" />
      </span>
      ${about}
    </li>`;
  return html`<li>
    <button class="artifact" onClick=${() => onOpen(item)}>
      ${
        isPicture(item.path) && item.size <= LARGEST_TILE
          ? html`<${Picture} run=${run} item=${item} alt="" otherwise=${html`<${FileIcon} />`} />`
          : html`<${FileIcon} />`
      }
      ${about}
    </button>
  </li>`;
}

const pathOf = (run, item) =>
  runPath(run.id, `/artifacts/${item.path.slice(HERE.length).split("/").map(encodeURIComponent).join("/")}`);

// `otherwise` is shown if the file is missing or not an image.
function Picture({ run, item, alt = item.caption || item.key, otherwise }) {
  const source = usePicture(run, item);
  const [isBroken, setBroken] = useState(false);
  if (isBroken || source === null) return otherwise;
  return source
    ? html`<img class="artifact-picture" src=${source} alt=${alt} onError=${() => setBroken(true)} />`
    : html`<span class="artifact-picture" aria-busy="true"></span>`;
}

// The type comes from the file name. An SVG becomes a data: URL, which has no origin: it cannot reach our data even in
// its own window.
function usePicture(run, item) {
  const [source, setSource] = useState(""); // null if it failed to load
  useEffect(() => {
    const abort = new AbortController();
    let made = "";
    getBlob(pathOf(run, item), {}, abort.signal).then(
      async (blob) => {
        const picture = new Blob([blob], { type: PICTURES[suffixOf(item.path)] });
        made = suffixOf(item.path) === "svg" ? await asData(picture) : URL.createObjectURL(picture);
        if (!abort.signal.aborted) setSource(made);
      },
      (error) => !isAborted(error) && setSource(null),
    );
    return () => {
      abort.abort();
      if (made.startsWith("blob:")) URL.revokeObjectURL(made);
    };
  }, [run.id, item.path]);
  return source;
}

const asData = (blob) =>
  new Promise((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.readAsDataURL(blob);
  });

function Viewer({ run, item, onClose }) {
  const [text, setText] = useState(undefined); // null if it is not text
  const [isSaving, download] = useVerb();
  useEffect(() => {
    if (isPicture(item.path)) return undefined;
    const abort = new AbortController();
    readable(run, item, abort.signal).then(setText, (error) => {
      if (isAborted(error)) return;
      showError(error);
      onClose();
    });
    return () => abort.abort();
  }, [item]);
  const save = () => download(async () => saveBlob(await getBlob(pathOf(run, item)), fileName(item.path)));
  return html`<${Dialog} title=${item.caption || item.key} onClose=${onClose} wide>
    <p class="muted small">
      ${fileName(item.path)} · step ${item.step} · ${bytes(item.size)}
      ${text && item.size > SHOWN_AS_TEXT && ` · first ${bytes(SHOWN_AS_TEXT)}`}
    </p>
    ${
      isPicture(item.path) &&
      html`<${Picture}
        run=${run}
        item=${item}
        otherwise=${html`<p class="muted">This file cannot be shown as an image.</p>`}
      />`
    }
    ${
      typeof text === "string" &&
      html`<${Code} text=${text} language=${languageOf(item.path)} label=${fileName(item.path)} />`
    }
    ${text === null && html`<p class="muted">This file cannot be shown as text.</p>`}
    <div class="dialog-verbs">
      <button disabled=${isSaving} onClick=${save}>
        <${Icon} name="download" size="14" />
        ${isSaving ? "Downloading…" : "Download"}
      </button>
      <button onClick=${onClose}>Close</button>
    </div>
  </${Dialog}>`;
}

// Return the start of a file as text, or null if it is not text. An empty file cannot be range-requested.
async function readable(run, item, abort) {
  if (!item.size) return "";
  const text = await (await getFirstBytes(pathOf(run, item), SHOWN_AS_TEXT, abort)).text();
  return text.includes("\0") || text.split("\ufffd").length > 8 ? null : text;
}
