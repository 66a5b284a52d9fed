import { isMarketState, isSymbol } from '../../schemas/pill.ts';
import type { PillFilter } from './endpoint.ts';
import type { OwnHeaders } from './endpoint-row.ts';

/** What is wrong with one member of what was asked for. */
export interface EndpointFault {
  /** JSON pointer as a fragment: `#/url`. */
  readonly pointer: string;
  readonly code: string;
  readonly detail: string;
}

export const HEADER_LIMITS = { countMax: 20, nameCharsMax: 64, valueCharsMax: 1_024 } as const;

/** RFC 9110 section 5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** RFC 9110 section 5.5, without what is not ASCII: visible, with blanks and tabs inside. */
const VALUE = /^(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?$/;

/** What the connection, the message or its signature is made of: not the customer's. */
const OURS = new Set([
  ...[
    'accept-encoding',
    'host',
    'connection',
    'transfer-encoding',
    'user-agent',
    'te',
    'trailer',
    'upgrade',
  ],
  ...['expect', 'keep-alive'],
]);
const OURS_BY_PREFIX = /^(?:webhook-|content-|proxy-)/;

/** Faults of a filter that its form does not show. */
export function filterFaults(
  filter: Pick<PillFilter, 'symbols' | 'states' | 'minSpread' | 'maxSpread'>,
): readonly EndpointFault[] {
  const faults: EndpointFault[] = [];
  filter.symbols.forEach((symbol, at) => {
    if (isSymbol(symbol)) return;
    const detail = 'Not a symbol: up to 32 capitals, digits and . : / _ & = ^ -, as 7203.T.';
    faults.push({ pointer: `#/symbols/${at}`, code: 'symbol_malformed', detail });
  });
  filter.states.forEach((state, at) => {
    if (isMarketState(state)) return;
    const detail =
      'No pill can have this state: 1 to 32 letters, digits, spaces or _ - . / : ( ) +.';
    faults.push({ pointer: `#/states/${at}`, code: 'market_state_malformed', detail });
  });
  const { minSpread, maxSpread } = filter;
  if (minSpread !== undefined && maxSpread !== undefined && minSpread > maxSpread) {
    const detail = `It is below min_spread, ${minSpread}: no pill would pass.`;
    faults.push({ pointer: '#/max_spread', code: 'range_backwards', detail });
  }
  return faults;
}

/** Faults of the headers that a customer wants to be sent along. */
export function headerFaults(headers: OwnHeaders): readonly EndpointFault[] {
  const names = Object.keys(headers);
  if (names.length > HEADER_LIMITS.countMax) {
    const detail = `${names.length} headers, limit ${HEADER_LIMITS.countMax}. Leave some out.`;
    return [{ pointer: '#/headers', code: 'too_many', detail }];
  }
  const seen = new Set<string>();
  return Object.entries(headers).flatMap(([name, value]): EndpointFault[] => {
    const fault = nameFault(name, seen) ?? valueFault(value);
    seen.add(name.toLowerCase());
    return fault === undefined ? [] : [{ pointer: `#/headers/${escaped(name)}`, ...fault }];
  });
}

type Fault = Omit<EndpointFault, 'pointer'>;

function nameFault(name: string, seen: ReadonlySet<string>): Fault | undefined {
  const { nameCharsMax } = HEADER_LIMITS;
  if (!TOKEN.test(name) || name.length > nameCharsMax) {
    const detail = `Not the name of a header: 1 to ${nameCharsMax} letters, digits or !#$%&'*+-.^_\`|~.`;
    return { code: 'header_name_malformed', detail };
  }
  const lower = name.toLowerCase();
  if (OURS.has(lower) || OURS_BY_PREFIX.test(lower)) {
    const detail = 'We set this header ourselves, or it is of the connection. Take another name.';
    return { code: 'header_reserved', detail };
  }
  if (!seen.has(lower)) return undefined;
  return { code: 'header_repeated', detail: 'Given twice: names differ in more than case.' };
}

function valueFault(value: string): Fault | undefined {
  const { valueCharsMax } = HEADER_LIMITS;
  if (VALUE.test(value) && value.length <= valueCharsMax) return undefined;
  const detail = `Send at most ${valueCharsMax} printable ASCII characters, none blank at either end.`;
  return { code: 'header_value_malformed', detail };
}

/** RFC 6901, and short enough to be told. */
function escaped(name: string): string {
  return name.slice(0, 64).toWellFormed().replaceAll('~', '~0').replaceAll('/', '~1');
}
