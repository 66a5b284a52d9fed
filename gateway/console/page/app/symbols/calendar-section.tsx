import type { Verdict } from '../../../../../sdk/exports.ts';
import { Facts } from '../parts/facts.tsx';
import { Time } from '../parts/time.tsx';

/** The session by the venue's calendar, and why no pills come. */
export function CalendarSection({ verdict }: { readonly verdict: Verdict }) {
  const { market, quiet, generator } = verdict;
  const { next } = market;
  const words = (text: string) => text.replaceAll('_', ' ');
  return (
    <section class="part">
      <h2>Calendar</h2>
      <Facts
        of={[
          ['Venue', market.venue ?? 'None is known'],
          ['Now', words(market.now)],
          ['Next', next === null ? '–' : <NextState key="next" {...next} />],
          ['Session', market.session_date ?? '–'],
          ['Time zone', market.timezone ?? '–'],
          ['Half day', market.half_day ? 'Yes' : 'No'],
          ['Calendar until', market.calendar_until ?? '–'],
          ['Generator', words(generator.state)],
        ]}
      />
      {quiet === null ? (
        <p class="hint">Not quiet: pills are expected and come.</p>
      ) : (
        <p>
          Quiet: <strong>{words(quiet.reason)}</strong>
          {quiet.since !== null && (
            <>
              , since <Time of={quiet.since} />
            </>
          )}
          {quiet.expected_back !== null && (
            <>
              ; pills are expected again at <Time of={quiet.expected_back} />
            </>
          )}
          .
        </p>
      )}
    </section>
  );
}

function NextState({ at, state }: { readonly at: string; readonly state: string }) {
  return (
    <>
      {state.replaceAll('_', ' ')} at <Time of={at} />
    </>
  );
}
