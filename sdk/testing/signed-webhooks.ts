import { Webhook } from 'standardwebhooks';

/** Secrets of an endpoint, only for tests. */
export const SECRET: string = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
export const OTHER_SECRET: string = `whsec_${Buffer.alloc(32, 8).toString('base64')}`;

export interface SignOptions {
  readonly id?: string;
  readonly secrets?: readonly string[];
  readonly at?: Date;
}

/** Headers of a delivery of the body, signed by the reference library. */
export function signedHeaders(body: string, options: SignOptions = {}): Record<string, string> {
  const { id = 'msg_1', secrets = [SECRET], at = new Date() } = options;
  const signatures = secrets.map((secret) => new Webhook(secret).sign(id, at, body));
  return {
    'content-type': 'application/json',
    'user-agent': 'pillole-webhooks/1',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': signatures.join(' '),
  };
}
