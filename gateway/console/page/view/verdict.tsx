import type { Verdict } from '../../../../sdk/exports.ts';
import { localTime } from '../market/platform-clock.ts';
import { formatSpread, formatTime } from './format.ts';
import type { Read } from './use-read.ts';

/** Whether the newest pill of a symbol can be acted on, and why not. */
export function VerdictPanel({ value, fault }: Read<Verdict>) {
  return (
    <section class="panel verdict" aria-labelledby="verdict-title">
      <h2 id="verdict-title">Verdict</h2>
      {value === undefined && fault === undefined && <p class="soft">Checking …</p>}
      {fault !== undefined && <p class="bad">The verdict could not be read: {fault.message}.</p>}
      {value !== undefined && <Findings verdict={value} />}
    </section>
  );
}

function Findings({ verdict }: { readonly verdict: Verdict }) {
  const { usable, reasons, checked_at, pill, market, spread, max_age_ms } = verdict;
  return (
    <>
      <p class={usable ? 'word good' : 'word bad'}>
        <span class="lamp" aria-hidden="true" />
        <strong>{verdict.verdict}</strong>{' '}
        {usable ? 'The newest pill can be acted on.' : 'Do not act on the newest pill.'}
      </p>
      {reasons.length > 0 && (
        <ul>
          {reasons.map(({ code, detail }) => (
            <li key={code}>
              <b>{code.replaceAll('_', ' ')}</b>: {detail}
            </li>
          ))}
        </ul>
      )}
      <dl>
        <dt>Checked</dt>
        <dd>
          {localTime(Date.parse(checked_at))}
          {pill !== null && `, the pill of ${formatTime(Date.parse(pill.timestamp))}`}
        </dd>
        <dt>Market</dt>
        <dd>
          {market.now.replaceAll('_', ' ')}
          {market.next !== null &&
            `, ${market.next.state.replaceAll('_', ' ')} at ${formatTime(Date.parse(market.next.at))}`}
        </dd>
        {spread !== null && (
          <>
            <dt>Usual spread</dt>
            <dd>
              {formatSpread(spread.median)} % median, {formatSpread(spread.p01)} to{' '}
              {formatSpread(spread.p99)} % in 98 of 100 of the last {spread.n} pills
            </dd>
            <dt>Deviation</dt>
            <dd>
              {spread.robust_z === null ? 'infinite' : `robust z ${spread.robust_z.toFixed(2)}`}
            </dd>
          </>
        )}
        <dt>Too old after</dt>
        <dd>{(max_age_ms / 1_000).toFixed(1)} s</dd>
      </dl>
    </>
  );
}
