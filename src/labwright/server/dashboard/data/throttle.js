// Run `work` at once, then at most every `pause` ms. The last call of a burst is never lost. Calls do not overlap.
export function throttle(work, pause) {
  let running = false;
  let again = false;
  let stopped = false;

  async function start() {
    if (stopped) return;
    if (running) {
      again = true;
      return;
    }
    running = true;
    try {
      await work();
    } finally {
      setTimeout(() => {
        running = false;
        if (again) {
          again = false;
          start();
        }
      }, pause);
    }
  }

  start.cancel = () => {
    stopped = true;
  };
  return start;
}
