// How busy each card was, as often as this page looked: kept while one is on other pages, gone when it is closed.

const KEPT_MS = 30 * 60_000;
const samples = new Map(); // uuid → [{ at, busy, memory }], oldest first

export function noteGpus(gpus, at = Date.now()) {
  for (const gpu of gpus) {
    const kept = (samples.get(gpu.uuid) ?? []).filter((one) => at - one.at < KEPT_MS);
    samples.set(gpu.uuid, [...kept, { at, busy: gpu.utilization / 100, memory: gpu.memory_used_mb / gpu.memory_total_mb }]);
  }
}

export const samplesOf = (uuid) => samples.get(uuid) ?? [];
