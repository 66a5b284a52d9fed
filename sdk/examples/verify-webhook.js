// Receives and verifies webhooks with only Node's standard library. receive-webhook.js does the same
// with the client, and is shorter.
//
//   PILLOLE_WEBHOOK_SECRET=whsec_… PORT=8000 node verify-webhook.js

// region: verify
import { createHmac, timingSafeEqual } from 'node:crypto';
import http from 'node:http';

/**
 * Throws unless the delivery was signed with one of the secrets within the last 5 minutes.
 * @param {Buffer} body the raw body, byte for byte
 * @param {Record<string, string | string[] | undefined>} headers `request.headers`
 * @param {string[]} secrets two during a rotation
 */
function verify(body, headers, secrets) {
  const id = String(headers['webhook-id'] ?? '');
  const timestamp = String(headers['webhook-timestamp'] ?? '');
  const signatures = String(headers['webhook-signature'] ?? '').split(' ');
  if (id === '' || !/^\d{1,12}$/.test(timestamp)) throw new Error('not a signed webhook');
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > 300) throw new Error('too old or too new');
  for (const secret of secrets) {
    const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
    const mac = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body);
    const expected = Buffer.from(`v1,${mac.digest('base64')}`);
    for (const signature of signatures) {
      const given = Buffer.from(signature);
      if (given.length === expected.length && timingSafeEqual(given, expected)) return;
    }
  }
  throw new Error('no signature matches');
}
// end

const secrets = (process.env.PILLOLE_WEBHOOK_SECRET ?? '').split(/\s+/).filter(Boolean);
if (secrets.length === 0) throw new Error('Set PILLOLE_WEBHOOK_SECRET to the endpoint’s secret.');
const BODY_BYTES_MAX = 1_048_576;

const server = http.createServer(async (request, response) => {
  /** @type {Buffer[]} */
  const chunks = [];
  let bytes = 0;
  try {
    for await (const chunk of request) {
      bytes += chunk.length;
      if (bytes > BODY_BYTES_MAX) return void response.writeHead(413).end();
      chunks.push(chunk);
    }
  } catch {
    return; // the sender closed the connection: the delivery is retried
  }
  const body = Buffer.concat(chunks); // the raw body, before any parser
  try {
    verify(body, request.headers, secrets);
  } catch (error) {
    return void response.writeHead(401).end(`${error}\n`);
  }
  const event = JSON.parse(body.toString());
  console.log(request.headers['webhook-id'], event.type);
  // A test needs the challenge, anything else any 2xx. Answer within 15 s: first answer, then work.
  response.writeHead(200).end(event.type === 'endpoint.test' ? event.data.challenge : '');
});

server.listen(Number(process.env.PORT ?? 8000), '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object') console.log(`http://127.0.0.1:${address?.port}`);
});
