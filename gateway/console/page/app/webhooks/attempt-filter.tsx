import { useLocation } from 'preact-iso';
import { Choice } from '../parts/choice.tsx';

const OUTCOMES = ['', 'delivered', 'retry', 'failed', 'expired'] as const;
const CODES = [
  '',
  '200',
  '204',
  '0',
  '400',
  '401',
  '404',
  '410',
  '429',
  '500',
  '502',
  '503',
  '504',
];
const CODE_TITLES = { '': 'Any', '0': 'No answer' };
const SINCE = { '': 'Last 30 days', '15m': '15 minutes', '1h': 'Hour', '24h': '24 hours' } as const;
const SINCE_MS: Readonly<Record<string, number>> = {
  '15m': 900_000,
  '1h': 3_600_000,
  '24h': 86_400_000,
};

/** The filter of the attempts, which is in the address. */
export function useAttemptFilter() {
  const { path, query, route } = useLocation();
  const { outcome = '', code = '', since = '' } = query;
  const change = (next: Readonly<Record<string, string>>) => {
    const kept = Object.entries({ ...query, ...next }).filter(([, value]) => value !== '');
    const text = new URLSearchParams(kept).toString();
    route(text === '' ? path : `${path}?${text}`, true);
  };
  return { outcome, code, since, change };
}

export type AttemptFilter = ReturnType<typeof useAttemptFilter>;

/** The filter as parameters of the API. @param nowMs on which `since` counts back */
export function attemptQuery(
  { outcome, code, since }: Pick<AttemptFilter, 'outcome' | 'code' | 'since'>,
  nowMs: number,
): string {
  const sinceMs = SINCE_MS[since];
  return new URLSearchParams({
    limit: '50',
    ...(outcome === '' ? {} : { outcome }),
    ...(/^\d{1,3}$/.test(code) ? { status: code } : {}),
    ...(sinceMs === undefined ? {} : { from: new Date(nowMs - sinceMs).toISOString() }),
  }).toString();
}

export function AttemptFilterFields({ filter }: { readonly filter: AttemptFilter }) {
  const { outcome, code, since, change } = filter;
  return (
    <div class="buttons">
      <Choice
        label="Outcome"
        options={OUTCOMES}
        titles={{ '': 'Any' }}
        value={outcome as ''}
        onChoose={(next) => change({ outcome: next })}
      />
      <Choice
        label="Code"
        // One that a link names is offered too.
        options={CODES.includes(code) ? CODES : [...CODES, code]}
        titles={CODE_TITLES}
        value={code}
        onChoose={(next) => change({ code: next })}
      />
      <Choice
        label="Time"
        options={Object.keys(SINCE)}
        titles={SINCE}
        value={since in SINCE ? since : ''}
        onChoose={(next) => change({ since: next })}
      />
    </div>
  );
}
