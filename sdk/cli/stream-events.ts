import type { Quiet } from '../stream/stream-frames.ts';
import type { Stream, StreamEvents } from '../stream/stream-types.ts';
import { failureJson, failureLines } from './error-report.ts';
import { type Terminal, writeLine } from './terminal.ts';
import { formatAge, printable } from './text-table.ts';

/** Prints the events besides items: as JSON on stdout, for people on stderr. */
export function printEvents({ stdout, stderr }: Terminal, stream: Stream, isJson: boolean): void {
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
        recovered === true ? 'Resumed from the position.' : '',
        recovered === false ? `Not resumed: ${reason}.` : '',
        neverSeen.length > 0 ? `No pills so far: ${neverSeen.join(' ')}.` : '',
      ]
        .filter(Boolean)
        .join(' '),
  );
  on(
    'quiet',
    (quiet) => quiet,
    (quiet) =>
      quiet.over
        ? `No longer quiet: ${quietSubject(quiet)}.`
        : `Quiet, but connected: ${quietText(quiet)}.`,
  );
  on(
    'dead',
    ({ silentMs }) => ({ silent_ms: silentMs }),
    ({ silentMs }) => `Dead: no frame for ${formatAge(silentMs)}; connecting again.`,
  );
  on(
    'drain',
    (drain) => drain,
    ({ reason }) => `The server stops (${reason}); the stream continues on another one.`,
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

/** Which symbols are quiet. A summary is of one venue. */
function quietSubject({ symbol, venue, count }: Quiet): string {
  const many = count === undefined ? 'all symbols' : `${count} symbols`;
  return symbol === '*' ? [venue, many].filter(Boolean).join(', ') : symbol;
}

/** The same, with the reason and the expected end. */
function quietText(quiet: Quiet): string {
  const { reason, until } = quiet;
  return `${quietSubject(quiet)}, ${reason}${until === null ? '' : ` until ${until}`}`;
}
