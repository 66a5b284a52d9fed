// Writes every pill to a file exactly once, even if this program is killed at any moment: each line
// has a pill and the position after it, so that both are stored or neither is.
//
//   PILLOLE_API_URL=… PILLOLE_STREAM_URL=… PILLOLE_KEY=… node resume.js pills.ndjson 7203.T
import { appendFileSync, existsSync, readFileSync, truncateSync } from 'node:fs';
import { createClient } from 'pillole';

const client = createClient({
  apiUrl: process.env.PILLOLE_API_URL ?? 'http://127.0.0.1:8080',
  streamUrl: process.env.PILLOLE_STREAM_URL ?? 'ws://127.0.0.1:8082',
  key: process.env.PILLOLE_KEY ?? '',
});

const [file = 'pills.ndjson', ...symbols] = process.argv.slice(2);

/** Complete lines of the file; an incomplete last line, left by a kill, is cut off. */
function readLines() {
  if (!existsSync(file)) return [];
  const content = readFileSync(file);
  const end = content.lastIndexOf('\n') + 1;
  if (end < content.length) truncateSync(file, end);
  const lines = content.subarray(0, end).toString('utf8').split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line));
}

const lines = readLines();
const resume = lines.at(-1)?.position;
// If a resume itself was interrupted, its pills come again. In a database, a unique key on
// (epoch, cursor) would refuse them.
const stored = new Set(lines.map(({ epoch, cursor }) => `${epoch} ${cursor}`));
console.log(resume === undefined ? 'beginning now' : `resuming from ${resume}`);

const stream = client.stream({
  symbols: symbols.length > 0 ? symbols : '*',
  backfill: true, // a record should include pills that were received late
  ...(resume === undefined ? {} : { resume }),
});
process.once('SIGINT', () => stream.close());

for await (const item of stream) {
  const { position = '' } = stream; // covers this item and all before it
  if (item.type === 'gap' && !item.filled) console.error('missing:', item.symbols, item.reason);
  if (item.type !== 'pill') continue;
  const epoch = position.split(':')[0];
  if (stored.has(`${epoch} ${item.cursor}`)) continue;
  appendFileSync(file, `${JSON.stringify({ position, epoch, ...item })}\n`);
}
