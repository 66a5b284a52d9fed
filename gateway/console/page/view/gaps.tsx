import type { Feed, ToldGap } from '../feed/feed.ts';
import { localTime } from '../market/time.ts';

const NAMED_MAX = 3;

/** What the stream said is missing; nothing where nothing is. */
export function Gaps({ gaps }: Pick<Feed, 'gaps'>) {
  const { count, last } = gaps;
  if (count === 0) return null;
  return (
    <details class="gaps">
      <summary>
        {count} {count === 1 ? 'gap' : 'gaps'} told
      </summary>
      <ul>
        {last.map((gap) => (
          <li key={`${gap.atMs} ${gap.symbols[0]} ${gap.until}`}>
            <time dateTime={new Date(gap.atMs).toISOString()}>{localTime(gap.atMs)}</time>{' '}
            {namesOf(gap)}: {gap.reason.replaceAll('_', ' ')}
            {gap.filled ? '' : '; those pills are not in the lines below'}
          </li>
        ))}
      </ul>
    </details>
  );
}

function namesOf({ symbols }: ToldGap): string {
  if (symbols.includes('*')) return 'any symbol';
  const named = symbols.slice(0, NAMED_MAX).join(', ');
  return symbols.length > NAMED_MAX ? `${named} and ${symbols.length - NAMED_MAX} more` : named;
}
