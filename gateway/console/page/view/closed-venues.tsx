import type { ClosedVenue } from '../market/closed-venues.ts';
import { formatTime } from './format.ts';

/** The venues that are not open, each once instead of once in each row. */
export function ClosedVenues(props: {
  readonly venues: readonly ClosedVenue[];
  readonly onChoose: (name: string) => void;
}) {
  const { venues, onChoose } = props;
  if (venues.length === 0) return null;
  return (
    <div class="closed-venues">
      <h2>Not open now</h2>
      <ul>
        {venues.map(({ code, name, state, opens_at, symbols }) => (
          <li key={code}>
            <button
              type="button"
              aria-label={`Show ${name}: ${symbols} ${symbols === 1 ? 'symbol' : 'symbols'}`}
              onClick={() => onChoose(name)}
            >
              {name}
            </button>{' '}
            {state !== 'closed' && state.replaceAll('_', ' ')}
            {opens_at !== null && ` until ${formatTime(Date.parse(opens_at))}`}
          </li>
        ))}
      </ul>
    </div>
  );
}
