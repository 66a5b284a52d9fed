import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { request } from 'undici';
import { type SigningKey, type SignOptions, signRequest } from '../../../testing/sign-request.ts';
import { waitFor } from '../../../testing/wait.ts';
import type { Answer, Customer } from './customer.ts';

const ROOT = '/api/manager/authentication';

/** A registered scheme of signatures, and the key to sign with. */
export interface SignatureScheme {
  readonly id: string;
  readonly key: SigningKey;
}

export function pairOf(algorithm: 'ed25519' | 'ecdsa-p256-sha256') {
  return algorithm === 'ed25519'
    ? generateKeyPairSync('ed25519')
    : generateKeyPairSync('ec', { namedCurve: 'P-256' });
}

export const pem = (key: KeyObject) => String(key.export({ format: 'pem', type: 'spki' }));

/** Registers a scheme without trying it. @param more members of the body */
export async function register(
  customer: Customer,
  algorithm: SigningKey['algorithm'],
  more: object = {},
): Promise<SignatureScheme> {
  const body = { name: algorithm, scopes: ['read', 'stream', 'support'], algorithm, ...more };
  if (algorithm === 'hmac-sha256') {
    const made = await customer.send('POST', `${ROOT}/signature-schemes`, body);
    const { scheme, secret } = expectStatus(made, 201).body;
    return { id: scheme.id, key: { algorithm, secret: Buffer.from(secret, 'base64') } };
  }
  const { publicKey, privateKey } = pairOf(algorithm);
  const all = { ...body, public_key: pem(publicKey) };
  const made = await customer.send('POST', `${ROOT}/signature-schemes`, all);
  return { id: expectStatus(made, 201).body.scheme.id, key: { algorithm, privateKey } };
}

export const openTrial = async (customer: Customer, id: string) =>
  expectStatus(await customer.send('POST', `${ROOT}/schemes/${id}/trial`), 200);

export const switchTo = (customer: Customer, id: string, state: 'on' | 'off') =>
  customer.send('PATCH', `${ROOT}/schemes/${id}`, { state });

/** Sends a request with these headers. */
export async function send(
  url: string,
  headers: Readonly<Record<string, string | string[]>> = {},
  { method = 'GET', body }: { readonly method?: string; readonly body?: string | undefined } = {},
): Promise<Answer> {
  const type = body === undefined ? {} : { 'content-type': 'application/json' };
  const answer = await request(url, { method, headers: { ...type, ...headers }, body } as never);
  const text = await answer.body.text();
  return {
    status: answer.statusCode,
    headers: answer.headers,
    body: text ? JSON.parse(text) : null,
  };
}

/** Signs a request as a client of the scheme would. */
export const signed = (
  { id: keyId, key }: SignatureScheme,
  url: string,
  more: Partial<SignOptions> = {},
) => signRequest({ method: 'GET', url, keyId, key, ...more });

/** Tries a scheme with a real request, and switches it on. */
export async function switchOn(
  customer: Customer,
  base: string,
  id: string,
  headersFor: (url: string) => Record<string, string> | Promise<Record<string, string>>,
): Promise<void> {
  await openTrial(customer, id);
  const url = `${base}/api/authentication/check`;
  await waitFor('the trial to succeed', async () => {
    const { status, body } = await send(url, await headersFor(url));
    return (status === 200 && body.ok) || JSON.stringify(body);
  });
  expectStatus(await switchTo(customer, id, 'on'), 200);
  await waitFor('the scheme to be on', async () => {
    const to = `${base}/api/account`;
    const { status, body } = await send(to, await headersFor(to));
    return status === 200 || JSON.stringify(body);
  });
}

export function expectStatus(answer: Answer, status: number): Answer {
  if (answer.status === status) return answer;
  throw new Error(`${answer.status} instead of ${status}: ${JSON.stringify(answer.body)}`);
}

/** A server that counts what it is asked, and answers as told. */
export interface Decoy {
  readonly url: string;
  /** Requests so far. */
  count(): number;
  answer: (response: http.ServerResponse) => void;
  close(): Promise<void>;
}

export async function openDecoy(answer: Decoy['answer']): Promise<Decoy> {
  let count = 0;
  const server = http.createServer((_request, response) => {
    count += 1;
    decoy.answer(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const decoy: Decoy = {
    url: `http://127.0.0.1:${port}/jwks.json`,
    count: () => count,
    answer,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return decoy;
}
