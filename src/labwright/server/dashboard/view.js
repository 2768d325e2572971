// The one door to the vendored view modules: what a component needs comes from here.

import { unturned } from "./format.js";
import { Component, h, options, render } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact-hooks.js";
export { batch, effect, signal, untracked } from "./vendor/signals.js";
export { Component, h, render };

// Markup as a tagged template. Values become text nodes or attributes, never markup.
export const html = htm.bind(h);

// All that is shown or read aloud passes here. What is typed, copied or an address stays as it is.
const READ_ALOUD = ["title", "aria-label"];
const before = options.vnode;
options.vnode = (vnode) => {
  const { type, props } = vnode;
  if (type === null && typeof props === "string") vnode.props = unturned(props);
  if (typeof type === "string")
    for (const name of READ_ALOUD) if (typeof props[name] === "string") props[name] = unturned(props[name]);
  before?.(vnode);
};
