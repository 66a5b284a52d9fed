// Polls the newest pill, and acts on it only if the platform has verified it.
// `usable` never throws: in doubt the answer is no, with the reason.
//
//   PILLOLE_API_URL=… PILLOLE_KEY=… node latest-usable.js 7203.T [times] [ms between]
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, PilloleError } from 'pillole';

const client = createClient({
  apiUrl: process.env.PILLOLE_API_URL ?? 'http://127.0.0.1:8080',
  key: process.env.PILLOLE_KEY ?? '',
});

const [symbol = '7203.T', times = '3', everyMs = '1000'] = process.argv.slice(2);

/** @param {import('pillole').VerdictPill} pill @param {number} validForMs */
function act(pill, validForMs) {
  console.log(`act on ${pill.symbol} ${pill.gross_spread_percent}, within ${validForMs} ms`);
}

let acted = '';
for (let time = 0; time < Number(times); time += 1) {
  if (time > 0) await sleep(Number(everyMs));
  const answer = await client.usable(symbol);
  const pill = answer.verdict?.pill;
  if (answer.usable && pill && pill.cursor !== acted) {
    acted = pill.cursor; // act once on each pill
    act(pill, answer.validForMs);
    continue;
  }
  if (answer.usable) continue;
  // Not usable: show the pill, but do not act on it.
  try {
    const { data } = await client.latest(symbol);
    console.log(`do not act on ${symbol} ${data.gross_spread_percent}: ${answer.reason}`);
  } catch (error) {
    if (!(error instanceof PilloleError)) throw error;
    console.error(`${error.code}: ${error.message}`);
    if (error.retry === 'never' && error.code !== 'no_pill') {
      process.exitCode = 1;
      break; // asking again does not help, for example with a wrong key
    }
  }
}
