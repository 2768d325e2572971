// The time as a signal: only what shows something that goes on reads it, so only that is drawn again each second.

import { signal } from "./ui.js";

export const now = signal(Date.now());

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);
