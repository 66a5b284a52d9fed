// Receives webhooks with the client: verifies them, answers the challenge, drops repeated deliveries.
//
//   PILLOLE_WEBHOOK_SECRET=whsec_… PORT=8000 node receive-webhook.js
import http from 'node:http';
import { buffer } from 'node:stream/consumers';

// region: verify
import { challengeAnswer, verifyWebhook, WebhookVerificationError } from 'pillole';

/** @param {http.IncomingMessage} request @param {http.ServerResponse} response */
async function receive(request, response) {
  const body = await buffer(request); // the raw body, before any parser
  try {
    const event = await verifyWebhook(body, request.headers, secrets);
    response.writeHead(200).end(challengeAnswer(event) ?? ''); // answer first, then work
    const id = String(request.headers['webhook-id']);
    if (isRepeat(id)) return; // deliveries are at least once
    if (event.type === 'pill.published') console.log(id, event.data.symbol, event.data.cursor);
    else console.log(id, event.type);
  } catch (error) {
    if (!(error instanceof WebhookVerificationError)) throw error;
    response.writeHead(401).end(`${error.code}: ${error.message}\n`);
  }
}
// end

const secrets = (process.env.PILLOLE_WEBHOOK_SECRET ?? '').split(/\s+/).filter(Boolean);
if (secrets.length === 0) throw new Error('Set PILLOLE_WEBHOOK_SECRET to the endpoint’s secret.');

// In production, store the ids in your database: a repeat may come three days later.
const IDS_MAX = 100_000;
/** @type {Set<string>} */
const ids = new Set();

/** @param {string} id */
function isRepeat(id) {
  if (ids.has(id)) return true;
  ids.add(id);
  for (const oldest of ids) {
    if (ids.size <= IDS_MAX) break;
    ids.delete(oldest);
  }
  return false;
}

const server = http.createServer((request, response) => {
  receive(request, response).catch((error) => {
    console.error(error);
    response.destroy(); // without an answer, the delivery is retried
  });
});

server.listen(Number(process.env.PORT ?? 8000), '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object') console.log(`http://127.0.0.1:${address?.port}`);
});
