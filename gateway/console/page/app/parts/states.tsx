import { isOfPlans, type RequestFailed } from '../session/problem.ts';

/** What failed, what to do, and the id that support needs. */
export function Failure(props: { readonly failure: RequestFailed; readonly onRetry?: () => void }) {
  const { failure, onRetry } = props;
  const { message, detail, faults, requestId } = failure;
  if (isOfPlans(failure.code)) {
    return <NeedsPlan detail={failure.code === 'tier_too_low' ? detail : undefined} />;
  }
  return (
    <div class="failure" role="alert">
      <p>
        <strong>{message}</strong>
      </p>
      {faults.length > 0 ? (
        <ul>
          {faults.map((fault) => (
            <li key={fault.pointer}>{fault.detail}</li>
          ))}
        </ul>
      ) : (
        detail !== undefined && <p>{detail}</p>
      )}
      {requestId !== undefined && (
        <p class="hint">
          Request <code>{requestId}</code>
        </p>
      )}
      {onRetry !== undefined && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** For what the account's plan does not have. */
export function NeedsPlan({ detail }: { readonly detail: string | undefined }) {
  return (
    <div class="empty">
      <p>
        {detail ?? 'This needs a plan.'} <a href="/app/plans">See the plans</a>.
      </p>
    </div>
  );
}

/** As high as what it stands for, so that nothing moves when the data comes. */
export function Skeleton({ rows }: { readonly rows: number }) {
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, row) => (
        <span key={row} />
      ))}
    </div>
  );
}
