import { REST_LIMITS } from '../rest/rest-client.ts';
import { GAP_LIMITS } from '../stream/gap-pages.ts';
import { STREAM_LIMITS } from '../stream/stream-types.ts';
import type { Script } from './script-player.ts';

/** The behaviour of all clients as a page: the rules of the scripts, and the bounds of retries. */
export function behaviourDocument(scripts: readonly Script[]): string {
  const rules = scripts.map(({ name, rule }) => `| ${name} | ${rule} |`);
  const s = (ms: number) => `${ms / 1_000} s`;
  return `# What the clients do

The TypeScript and the Python client behave alike. Each rule below is a script in \`testing/scripts\`: what a server sends on each connection,
and the items, the error and the position that any client must make of it. \`behaviour.test.ts\` plays the scripts to the TypeScript client
and to both faces of the Python client, and writes this page.

| situation | rule |
|---|---|
${rules.join('\n')}

## States of a stream

\`connecting\` → \`live\` once every subscribe frame is answered with \`live\` → \`waiting\` after a temporary end → \`connecting\` …; \`closed\` for
good after \`close\`, the end of the loop, or an error that reconnecting cannot cure.

## Bounds

| what | bound |
|---|---|
| from the attempt to connect until \`welcome\` | 10 s |
| silence after which a connection is dead | two heartbeats, by the interval in \`welcome\`; time in which the client does not read does not count |
| wait before reconnecting | the server's \`reconnect_after_ms\` as it is; else its \`retry_after_ms\`, if any, plus full jitter of 0 to min(${s(STREAM_LIMITS.reconnectMaxMs)}, ${s(STREAM_LIMITS.reconnectFirstMs)} × 2^attempt) |
| a refused handshake (Python; a WebSocket of JavaScript does not show it) | its \`Retry-After\`, at most 60 s, plus the same jitter |
| a connection that resets the back-off | live for ${s(STREAM_LIMITS.stableMs)} |
| pills that wait for the consumer | ${STREAM_LIMITS.bufferMax.toLocaleString('en')}; beyond them the client does not read its socket |
| one gap | ${GAP_LIMITS.pagesMax} pages of history; ${GAP_LIMITS.symbolsMax} symbols of one break |
| a GET | ${REST_LIMITS.attemptsMax} attempts of ${s(REST_LIMITS.timeoutMs)} with full jitter of 0 to min(${s(REST_LIMITS.backoffMaxMs)}, ${s(REST_LIMITS.backoffFirstMs)} × 2^attempt), not before \`Retry-After\`; a \`Retry-After\` above ${s(REST_LIMITS.retryAfterMaxMs)} is thrown |

## Close codes

1007, 1009 and 45xx end the stream with their error; every other close is temporary. A handshake that is answered with a 4xx other than 408 and
429 is \`not_pillole\`: it ends a stream that never was open, and is temporary otherwise, because a proxy may answer so for a while.
`;
}
