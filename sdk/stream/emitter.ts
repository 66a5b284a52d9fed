export type Emitter<E extends object> = ReturnType<typeof createEmitter<E>>;

/** Calls the listeners of named events. An event without a listener is dropped, even `error`. */
export function createEmitter<E extends object>() {
  const listeners = new Map<keyof E, Set<(value: never) => void>>();
  return {
    /** @returns a function that removes the listener */
    on<K extends keyof E>(event: K, listener: (value: E[K]) => void): () => void {
      const known = listeners.get(event) ?? new Set();
      listeners.set(event, known);
      known.add(listener);
      return () => void known.delete(listener);
    },
    emit<K extends keyof E>(event: K, value: E[K]): void {
      for (const listener of [...(listeners.get(event) ?? [])]) {
        try {
          listener(value as never);
        } catch (error) {
          // A fault of the listener is reported as an uncaught error; the stream continues.
          queueMicrotask(() => {
            throw error;
          });
        }
      }
    },
  };
}
