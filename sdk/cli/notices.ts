import type { Stream, StreamEvents } from '../stream.ts';
import { failureJson, failureLines } from './failure.ts';
import { formatAge, printable } from './table.ts';
import { type Terminal, writeLine } from './terminal.ts';

/** Tells what happens besides items: to programs on stdout, to persons on stderr. */
export function tellEvents({ stdout, stderr }: Terminal, stream: Stream, isJson: boolean): void {
  const on = <K extends keyof StreamEvents>(
    event: K,
    toJson: (value: StreamEvents[K]) => object,
    toText: (value: StreamEvents[K]) => string,
  ) =>
    stream.on(event, (value) => {
      if (isJson) writeLine(stdout, JSON.stringify({ type: event, ...toJson(value) }));
      else writeLine(stderr, printable(toText(value)));
    });

  on(
    'open',
    (opened) => opened,
    ({ accepted, recovered, reason, position, neverSeen }) =>
      [
        `Live: ${accepted.join(' ')} from ${position}.`,
        recovered === true ? 'Resumed: nothing is missing.' : '',
        recovered === false ? `Not resumed: ${reason}.` : '',
        neverSeen.length > 0 ? `Never seen so far: ${neverSeen.join(' ')}.` : '',
      ]
        .filter(Boolean)
        .join(' '),
  );
  on(
    'quiet',
    (quiet) => quiet,
    ({ symbol, reason, until }) =>
      `Quiet, and alive: ${symbol === '*' ? 'all' : symbol}, ${reason}` +
      `${until === null ? '' : ` until ${until}`}.`,
  );
  on(
    'dead',
    ({ silentMs }) => ({ silent_ms: silentMs }),
    ({ silentMs }) => `Dead: no sign of life for ${formatAge(silentMs)}; connecting anew.`,
  );
  on(
    'drain',
    (drain) => drain,
    ({ reason }) => `The server stops (${reason}); the stream goes on at another.`,
  );
  on(
    'status',
    (status) => status,
    ({ component, state, message }) => `${component} is ${state}: ${message}`,
  );
  on(
    'reconnecting',
    ({ attempt, delayMs, error }) => ({ attempt, delay_ms: delayMs, error: failureJson(error) }),
    ({ attempt, delayMs, error }) =>
      `${error.message} (${error.code}) Attempt ${attempt} in ${formatAge(delayMs)}.`,
  );
  on('error', failureJson, (error) => failureLines(error).join(' '));
}
