// The one door to the vendored view modules: what a component needs comes from here.

import { Component, h, render } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact-hooks.js";
export { batch, effect, signal, untracked } from "./vendor/signals.js";
export { Component, h, render };

// Markup as a tagged template. Values become text nodes or attributes, never markup.
export const html = htm.bind(h);
