// Format values for reading. Show the exact value in a `title` beside them.

const WORDS = { NaN: "NaN", Infinity: "∞", "-Infinity": "−∞" };

// JSON has no NaN and no infinity: the server sends them as strings.
export function toNumber(value) {
  return typeof value === "string" ? Number(value) : (value ?? NaN);
}

// Four significant digits.
export function number(value) {
  if (value === null || value === undefined) return "";
  if (value in WORDS) return WORDS[value];
  if (!Number.isFinite(value)) return WORDS[String(value)] ?? String(value);
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e7) return String(value);
  if (size >= 1e7 || size < 1e-4) return tidyExponent(value.toExponential(3));
  return String(Number(value.toPrecision(4)));
}

function tidyExponent(text) {
  const [digits, exponent] = text.split("e");
  return `${Number(digits)}e${exponent.replace("+", "")}`;
}

// `3m 12s`: the two largest units.
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 0) return "0s";
  if (seconds < 10) return `${Number(seconds.toFixed(1))}s`;
  const whole = Math.floor(seconds);
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${whole % 60}s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)}h ${Math.floor((whole % 3600) / 60)}m`;
  return `${Math.floor(whole / 86400)}d ${Math.floor((whole % 86400) / 3600)}h`;
}

export function bytes(count) {
  if (count < 1000) return `${count} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let unit = -1;
  do {
    count /= 1000;
    unit += 1;
  } while (count >= 999.5 && unit < units.length - 1);
  return `${count < 10 ? count.toFixed(1) : Math.round(count)} ${units[unit]}`;
}

// GPU memory as the driver counts it: 1 GB is 1,024 MB.
export const cardMemory = (mb) => (mb < 1024 ? `${Math.round(mb)} MB` : `${(mb / 1024).toFixed(1)} GB`);

export function ago(time, now) {
  const seconds = (now - Date.parse(time)) / 1000;
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${Math.floor(seconds)}s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)}h ago`;
  if (seconds < 14 * 86400) return `${Math.floor(seconds / 86400)}d ago`;
  return new Date(time).toLocaleDateString(undefined, { year: "numeric", month: "short", day: "numeric" });
}

export const exactTime = (time) => (time ? new Date(time).toLocaleString() : "");

export const counted = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;

export const capitalized = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// Replace characters that change the text direction: they could make one name look like another.
export const withoutBidi = (text) => text.replace(/[\u202a-\u202e\u2066-\u2069]/g, "\ufffd");

export const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));
