type Step = () => void | Promise<void>;

/**
 * Runs steps one after another, each at once if no earlier one is still running. A step's error goes
 * to `onError`, and the next step runs all the same.
 */
export function createSerialQueue(onError: (error: unknown) => void) {
  const steps: Step[] = [];
  let isBusy = false;
  const next = () => {
    while (!isBusy) {
      const step = steps.shift();
      if (step === undefined) return;
      isBusy = true;
      try {
        const result = step();
        if (result === undefined) isBusy = false;
        else {
          void result.catch(onError).finally(() => {
            isBusy = false;
            next();
          });
        }
      } catch (error) {
        isBusy = false;
        onError(error);
      }
    }
  };
  return {
    run(step: Step): void {
      steps.push(step);
      next();
    },
    /** Number of steps that wait behind the running one. */
    get waiting(): number {
      return steps.length;
    },
  };
}
