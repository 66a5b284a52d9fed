import type { FieldCode } from '../../../schemas/fault.ts';
import {
  hintForSymbol,
  isMarketState,
  isSymbol,
  MARKET_STATE_HINT,
} from '../../../schemas/pill.ts';
import { isRangeBackwards } from '../../../schemas/pill-filter.ts';
import { isReservedHeader } from '../send/webhook-sender.ts';
import type { OwnHeaders } from './endpoint-row.ts';
import type { EndpointFilter } from './webhook-endpoint.ts';

/** A fault in one member of a request. */
export interface EndpointFault {
  /** JSON pointer as a fragment: `#/url`. */
  readonly pointer: string;
  readonly code: FieldCode;
  readonly detail: string;
}

export const HEADER_LIMITS = { countMax: 20, nameCharsMax: 64, valueCharsMax: 1_024 } as const;

/** RFC 9110 section 5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** RFC 9110 section 5.5, limited to ASCII: visible characters, with blanks and tabs inside. */
const VALUE = /^(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?$/;

/** Faults of a filter that its JSON schema does not cover. */
export function filterFaults(
  filter: Pick<EndpointFilter, 'symbols' | 'states' | 'minSpread' | 'maxSpread'>,
): readonly EndpointFault[] {
  const faults: EndpointFault[] = [];
  filter.symbols.forEach((symbol, at) => {
    if (isSymbol(symbol)) return;
    const detail = hintForSymbol(symbol);
    faults.push({ pointer: `#/symbols/${at}`, code: 'symbol_malformed', detail });
  });
  filter.states.forEach((state, at) => {
    if (isMarketState(state)) return;
    const detail = MARKET_STATE_HINT;
    faults.push({ pointer: `#/states/${at}`, code: 'market_state_malformed', detail });
  });
  if (isRangeBackwards(filter)) {
    const detail = `max_spread is below min_spread (${filter.minSpread}), so no pill would pass.`;
    faults.push({ pointer: '#/max_spread', code: 'range_backwards', detail });
  }
  return faults;
}

/** Faults of the custom headers of an endpoint. */
export function headerFaults(headers: OwnHeaders): readonly EndpointFault[] {
  const names = Object.keys(headers);
  if (names.length > HEADER_LIMITS.countMax) {
    const detail = `There are ${names.length} headers; the limit is ${HEADER_LIMITS.countMax}. Remove some.`;
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
    const detail = `A header name has 1 to ${nameCharsMax} letters, digits or !#$%&'*+-.^_\`|~.`;
    return { code: 'header_name_malformed', detail };
  }
  const lower = name.toLowerCase();
  if (isReservedHeader(lower)) {
    const detail =
      'This header is reserved for the platform, the connection or proxies. Choose another name; ' +
      'credentials belong in Authorization.';
    return { code: 'header_reserved', detail };
  }
  if (!seen.has(lower)) return undefined;
  const detail = 'This header is given twice. Header names are case-insensitive.';
  return { code: 'header_repeated', detail };
}

function valueFault(value: string): Fault | undefined {
  const { valueCharsMax } = HEADER_LIMITS;
  if (VALUE.test(value) && value.length <= valueCharsMax) return undefined;
  const detail = `A header value has at most ${valueCharsMax} printable ASCII characters, without blanks at either end.`;
  return { code: 'header_value_malformed', detail };
}

/** RFC 6901, and short enough for a message. */
function escaped(name: string): string {
  return name.slice(0, 64).toWellFormed().replaceAll('~', '~0').replaceAll('/', '~1');
}
