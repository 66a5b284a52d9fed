import type { Feed, ReceivedGap } from '../feed/market-feed.ts';
import { localTime } from '../market/platform-clock.ts';

const NAMED_MAX = 3;

/** The gaps that the stream has reported; nothing if there are none. */
export function Gaps({ gaps }: Pick<Feed, 'gaps'>) {
  const { count, last } = gaps;
  if (count === 0) return null;
  return (
    <details class="gaps">
      <summary>
        {count} {count === 1 ? 'gap' : 'gaps'} reported
      </summary>
      <ul>
        {last.map((gap) => (
          <li key={`${gap.atMs} ${gap.symbols[0]} ${gap.until}`}>
            <time dateTime={new Date(gap.atMs).toISOString()}>{localTime(gap.atMs)}</time>{' '}
            {namesOf(gap)}: {gap.reason.replaceAll('_', ' ')}
            {gap.filled ? '' : '; the missing pills are not shown below'}
          </li>
        ))}
      </ul>
    </details>
  );
}

function namesOf({ symbols }: ReceivedGap): string {
  if (symbols.includes('*')) return 'any symbol';
  const named = symbols.slice(0, NAMED_MAX).join(', ');
  return symbols.length > NAMED_MAX ? `${named} and ${symbols.length - NAMED_MAX} more` : named;
}
