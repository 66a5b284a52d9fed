// Prints pills as they come, with an async iterator. The stream reconnects by itself, resumes at its
// position, fills gaps, and reports those that it cannot fill.
//
//   PILLOLE_API_URL=… PILLOLE_STREAM_URL=… PILLOLE_KEY=… node tail.js 7203.T 0700.HK
import { createClient, PilloleError } from 'pillole';

const client = createClient({
  apiUrl: process.env.PILLOLE_API_URL ?? 'http://127.0.0.1:8080',
  streamUrl: process.env.PILLOLE_STREAM_URL ?? 'ws://127.0.0.1:8082',
  key: process.env.PILLOLE_KEY ?? '',
});

const symbols = process.argv.slice(2);
const stream = client.stream({
  symbols: symbols.length > 0 ? symbols : '*',
  refusedSymbols: 'deliver', // without this, a refused symbol ends the stream with an error
});
process.once('SIGINT', () => stream.close()); // ends the loop below

// Everything except items comes as events, which do not end the loop.
stream.on('reconnecting', ({ delayMs, error }) => {
  console.error(`${error.message} Next attempt in ${delayMs} ms.`);
});

try {
  for await (const item of stream) {
    switch (item.type) {
      case 'snapshot': // the newest pill of each symbol, as the initial state
        for (const pill of item.pills) console.log('begins', pill.symbol, pill.cursor);
        break;
      case 'pill':
        // Do not trade on a pill that is late or replayed.
        console.log(item.late || item.replayed ? 'past' : 'now', item.symbol, item.cursor);
        break;
      case 'gap':
        console.log(item.filled ? 'filled' : 'missing', item.symbols.join(' '), item.reason);
        break;
      case 'refused': // a mistyped symbol is never silent
        console.error('refused', item.symbol, item.code);
        break;
    }
    // If this loop is slow, nothing is lost: the client stops reading, and resumes if necessary.
  }
} catch (error) {
  // Reconnecting does not help: a wrong key, a plan without streams, …
  if (!(error instanceof PilloleError)) throw error;
  console.error(`${error.code}: ${error.message}`);
  process.exitCode = 1;
}
