// What this browser remembers for this origin. A browser may forbid that; then it lasts as long as the page.

const fallback = new Map();
export const keyOf = (name) => `labwright.${name}`;

export function recall(name, otherwise) {
  try {
    const text = localStorage.getItem(keyOf(name)) ?? fallback.get(name);
    return text == null ? otherwise : JSON.parse(text);
  } catch {
    return otherwise;
  }
}

export function remember(name, value) {
  const text = JSON.stringify(value);
  fallback.set(name, text);
  try {
    localStorage.setItem(keyOf(name), text);
  } catch {
    // Not allowed or full: the copy above serves this page.
  }
}

export const forgetCopy = (name) => fallback.delete(name);

export function forget(name) {
  forgetCopy(name);
  try {
    localStorage.removeItem(keyOf(name));
  } catch {
    // Nothing was kept there either.
  }
}
