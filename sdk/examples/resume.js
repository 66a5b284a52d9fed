// Keeps every pill in a file, each once, however often this program is killed: a line holds a pill
// together with the position that it leads to, so both are kept or neither is.
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

/** Whole lines of the file; a half one, of a program that was killed, is cut off. */
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
// Pills of a resume that was itself cut short come again. A database would refuse them by a unique
// key on (epoch, cursor).
const held = new Set(lines.map(({ epoch, cursor }) => `${epoch} ${cursor}`));
console.log(resume === undefined ? 'begins now' : `goes on from ${resume}`);

const stream = client.stream({
  symbols: symbols.length > 0 ? symbols : '*',
  backfill: true, // pills that came long after their time belong in a record too
  ...(resume === undefined ? {} : { resume }),
});
process.once('SIGINT', () => stream.close());

for await (const item of stream) {
  const { position = '' } = stream; // of what the loop has taken, this item with it
  if (item.type === 'gap' && !item.filled) console.error('missing:', item.symbols, item.reason);
  if (item.type !== 'pill') continue;
  const epoch = position.split(':')[0];
  if (held.has(`${epoch} ${item.cursor}`)) continue;
  appendFileSync(file, `${JSON.stringify({ position, epoch, ...item })}\n`);
}
