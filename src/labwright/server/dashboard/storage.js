// What this browser remembers for this origin. A browser may forbid that; then it lasts as long as the page.

const fallback = new Map();
const key = (name) => `labwright.${name}`;

export function recall(name, otherwise) {
  try {
    const text = localStorage.getItem(key(name)) ?? fallback.get(name);
    return text == null ? otherwise : JSON.parse(text);
  } catch {
    return otherwise;
  }
}

export function remember(name, value) {
  const text = JSON.stringify(value);
  fallback.set(name, text);
  try {
    localStorage.setItem(key(name), text);
  } catch {
    // Not allowed or full: the copy above serves this page.
  }
}

export function forget(name) {
  fallback.delete(name);
  try {
    localStorage.removeItem(key(name));
  } catch {
    // Nothing was kept there either.
  }
}
