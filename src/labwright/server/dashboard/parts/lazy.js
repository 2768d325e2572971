// A part whose module is large: fetched when it is first shown.

import { html, useEffect, useState } from "../ui.js";
import { Problem } from "./message.js";

export function Lazy({ load, ...props }) {
  const [found, setFound] = useState(null);
  useEffect(() => {
    load().then((module) => setFound({ Show: module.default }), () => setFound({ error: new Error("This part could not be loaded.") }));
  }, []);
  if (!found) return html`<div class="loading" aria-busy="true"></div>`;
  if (found.error) return html`<${Problem} error=${found.error} />`;
  return html`<${found.Show} ...${props} />`;
}
