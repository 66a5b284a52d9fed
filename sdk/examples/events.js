// Follows a stream by events, and knows at any time whether its data is complete: `quiet` means a
// closed market, `dead` a lost connection, `gap` missing pills.
//
//   PILLOLE_API_URL=… PILLOLE_STREAM_URL=… PILLOLE_KEY=… node events.js 7203.T
import { createClient } from 'pillole';

const client = createClient({
  apiUrl: process.env.PILLOLE_API_URL ?? 'http://127.0.0.1:8080',
  streamUrl: process.env.PILLOLE_STREAM_URL ?? 'ws://127.0.0.1:8082',
  key: process.env.PILLOLE_KEY ?? '',
});

/** @type {Map<string, import('pillole').Pill>} */
const newest = new Map();
let isLive = false;

// `latest`: if pills come too fast, only the newest of each symbol, with a count of the skipped ones.
const symbols = process.argv.slice(2);
const stream = client.stream({ symbols: symbols.length > 0 ? symbols : '*', mode: 'latest' });

stream.on('snapshot', ({ pills }) => {
  for (const pill of pills) newest.set(pill.symbol, pill);
});
stream.on('pill', (pill) => {
  if (!pill.late) newest.set(pill.symbol, pill);
});
stream.on('open', ({ position, recovered }) => {
  isLive = true;
  const resumed = recovered === true ? ', resumed' : '';
  console.log(`live at ${position}, ${newest.size} symbols known${resumed}`);
});
stream.on('reconnecting', ({ attempt }) => {
  isLive = false; // do not act on `newest` until it is live again
  console.log(`not live: attempt ${attempt}`);
});
stream.on('quiet', ({ symbol, reason }) =>
  console.log(`quiet, but connected: ${symbol}, ${reason}`),
);
stream.on('dead', ({ silentMs }) => console.log(`dead: no frame for ${silentMs} ms`));
stream.on('gap', ({ filled, reason }) => console.log(`gap (${reason}), filled: ${filled}`));
stream.on('error', ({ code, message }) => console.error(`${code}: ${message}`));
stream.on('closed', ({ error, position }) => {
  console.log(`closed at ${position}, live before: ${isLive}`);
  if (error !== undefined) process.exitCode = 1;
});
process.once('SIGINT', () => stream.close());
