import type { Dispatcher, request } from 'undici';

/** A webhook endpoint, and the key of its account that may change it. */
export interface Endpoint {
  /** Of the API. */
  readonly port: number;
  readonly id: string;
  readonly key: string;
}

let changes = 0;

/** Changes an endpoint, which locks the rows of its account. @returns the status of the answer */
export async function sendChange(
  send: typeof request,
  dispatcher: Dispatcher,
  { port, id, key }: Endpoint,
): Promise<number> {
  changes += 1;
  const { statusCode, body } = await send(`http://127.0.0.1:${port}/api/webhooks/${id}`, {
    dispatcher,
    method: 'PATCH',
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    body: JSON.stringify({ description: `change ${changes}` }),
  });
  await body.dump();
  return statusCode;
}
