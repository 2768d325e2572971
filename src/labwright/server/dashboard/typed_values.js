// What people type into a field as values: `0.1, 0.01` are numbers, `true` is a truth, `adam` a word.

export const valuesOf = (words) => words.split(",").map((word) => word.trim()).filter(Boolean).map(asValue);

function asValue(word) {
  try {
    return JSON.parse(word);
  } catch {
    return word;
  }
}

// One parameter a line, `lr: 0.1, 0.01`; a line without a name is told by its words.
export function parametersOf(lines) {
  const pairs = lines.split("\n").filter((line) => line.trim()).map((line) => {
    const [, name, values] = /^\s*([^:=]+?)\s*[:=](.*)$/.exec(line) ?? [];
    if (!name || !valuesOf(values).length) throw Object.assign(new Error(`“${line.trim()}” has no name or no values.`), { hint: "Write a parameter a line, as in lr: 0.1, 0.01" });
    return [name, valuesOf(values)];
  });
  return Object.fromEntries(pairs);
}
