import { setTimeout as sleep } from 'node:timers/promises';
import type { RegisteredEndpoint } from '../endpoints/registered-endpoint.ts';
import { DeliveryQueue, type DeliveryQueueDeps } from './delivery-queue.ts';

export type DeliveryQueues = ReturnType<typeof createDeliveryQueues>;

/** The delivery queues of all endpoints, created on demand. */
export function createDeliveryQueues(deps: DeliveryQueueDeps) {
  const queues = new Map<string, DeliveryQueue>();
  return {
    of(endpoint: RegisteredEndpoint): DeliveryQueue {
      const queue = queues.get(endpoint.id) ?? new DeliveryQueue(endpoint, deps);
      queues.set(endpoint.id, queue);
      return queue;
    },
    forget: (endpointId: string) => void queues.delete(endpointId),
    /** Stores all waiting pills and awaits attempts in flight, until the deadline. */
    async close(deadlineMs: number): Promise<void> {
      const closed = Promise.all([...queues.values()].map((queue) => queue.close()));
      await Promise.race([closed, sleep(deadlineMs)]);
    },
  };
}
