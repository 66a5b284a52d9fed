// Prints pills as they come, as an async iterator. The stream connects again by itself, resumes
// where it was, fills gaps, and tells those it could not fill.
//
//   PILLOLE_API_URL=… PILLOLE_STREAM_URL=… PILLOLE_KEY=… node tail.js 7203.T 0700.HK
import { createClient, PilloleError } from 'pillole';

const client = createClient({
  apiUrl: process.env.PILLOLE_API_URL ?? 'http://127.0.0.1:8080',
  streamUrl: process.env.PILLOLE_STREAM_URL ?? 'ws://127.0.0.1:8082',
  key: process.env.PILLOLE_KEY ?? '',
});

const symbols = process.argv.slice(2);
const stream = client.stream({ symbols: symbols.length > 0 ? symbols : '*' });
process.once('SIGINT', () => stream.close()); // the loop below ends then

// What is no item comes as events: none of them ends the loop.
stream.on('reconnecting', ({ delayMs, error }) => {
  console.error(`${error.message} Again in ${delayMs} ms.`);
});

try {
  for await (const item of stream) {
    switch (item.type) {
      case 'snapshot': // the newest pill of each symbol: where one begins
        for (const pill of item.pills) console.log('begins', pill.symbol, pill.cursor);
        break;
      case 'pill':
        // A pill that is late, or that is handed over again, is nothing to trade on.
        console.log(item.late || item.replayed ? 'past' : 'now', item.symbol, item.cursor);
        break;
      case 'gap':
        console.log(item.filled ? 'filled' : 'missing', item.symbols.join(' '), item.reason);
        break;
    }
    // Nothing is lost while this waits: the server is held back, and at last the stream resumes.
  }
} catch (error) {
  // What connecting again cannot cure: a wrong key, a plan without streams, …
  if (!(error instanceof PilloleError)) throw error;
  console.error(`${error.code}: ${error.message}`);
  process.exitCode = 1;
}
