/** Calls listeners by the name of an event. */
export interface Emitter<E extends object> {
  /** @returns what takes the listener away again */
  on<K extends keyof E>(event: K, listener: (value: E[K]) => void): () => void;
  emit<K extends keyof E>(event: K, value: E[K]): void;
}

/** Creates one. Without a listener an event is nothing, `error` too. */
export function createEmitter<E extends object>(): Emitter<E> {
  const listeners = new Map<keyof E, Set<(value: never) => void>>();
  return {
    on(event, listener) {
      const known = listeners.get(event) ?? new Set();
      listeners.set(event, known);
      known.add(listener as (value: never) => void);
      return () => void known.delete(listener as (value: never) => void);
    },
    emit(event, value) {
      for (const listener of [...(listeners.get(event) ?? [])]) {
        try {
          listener(value as never);
        } catch (error) {
          // The listener's own fault: reported as any uncaught error, the stream goes on.
          queueMicrotask(() => {
            throw error;
          });
        }
      }
    },
  };
}
