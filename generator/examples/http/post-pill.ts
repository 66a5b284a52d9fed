// Posts one pill. A failure that may pass is repeated with the same id, so the pill counts once.
// The address comes from stack.json, which `npm start` writes; a token from INGEST_CREDENTIAL.
// After `npm run build`: node dist/generator/examples/http/post-pill.js SYMBOL SPREAD [STACK_JSON]
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const ATTEMPTS_MAX = 8;

function end(message: string): never {
  console.error(message);
  process.exit(1);
}

const [symbol, spread, stack = '.local/stack.json', ...rest] = process.argv.slice(2);
if (symbol === undefined || !Number.isFinite(Number(spread ?? '-')) || rest.length > 0)
  end('Usage: node post-pill.js SYMBOL SPREAD [STACK_JSON]');
if (!existsSync(stack))
  end(`No running stack: ${stack} does not exist. Run "npm start", or name its stack.json.`);
const { ingest } = JSON.parse(readFileSync(stack, 'utf8')) as { readonly ingest: string };

const pill = {
  id: randomUUID(),
  timestamp: new Date().toISOString(),
  symbol,
  gross_spread_percent: Number(spread),
  market_state: 'open',
  confidence: 90,
};
const token = process.env.INGEST_CREDENTIAL;
const headers = {
  'content-type': 'application/json',
  ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
};

for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
  let waitMs = Math.random() * Math.min(5_000, 100 * 2 ** attempt);
  try {
    const signal = AbortSignal.timeout(10_000);
    const body = JSON.stringify(pill);
    const answer = await fetch(`${ingest}/api/pillole`, { method: 'POST', headers, body, signal });
    const text = await answer.text();
    if (answer.ok) {
      console.log(text);
      process.exit();
    }
    if (answer.status !== 429 && answer.status < 500) end(`The pill was refused: ${text}`);
    waitMs += 1_000 * Number(answer.headers.get('retry-after') ?? 0);
  } catch {
    // Unreachable, reset or too late: the pill may have been stored.
  }
  await sleep(waitMs);
}
end(`No answer after ${ATTEMPTS_MAX} attempts. Try again later with the same id: ${pill.id}`);
