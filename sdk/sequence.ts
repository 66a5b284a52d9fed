/** Runs steps one after another: at once while none waits for something. */
export interface Sequence {
  run(step: () => void | Promise<void>): void;
  /** Steps that wait behind one under way. */
  readonly waiting: number;
}

/** Creates one. A step's fault goes to `onFault`; the next one runs all the same. */
export function createSequence(onFault: (error: unknown) => void): Sequence {
  const steps: (() => void | Promise<void>)[] = [];
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
          void result.catch(onFault).finally(() => {
            isBusy = false;
            next();
          });
        }
      } catch (error) {
        isBusy = false;
        onFault(error);
      }
    }
  };
  return {
    run(step) {
      steps.push(step);
      next();
    },
    get waiting() {
      return steps.length;
    },
  };
}
