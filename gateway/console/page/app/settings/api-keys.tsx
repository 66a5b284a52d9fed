import { useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import type { Account, Usage } from '../account/bodies.ts';
import { PageOf } from '../parts/page.tsx';
import { Failure, Skeleton } from '../parts/states.tsx';
import { useLoad } from '../parts/use-load.ts';
import { useNew } from '../parts/use-new.ts';
import { CreateKeyDialog } from './create-key-dialog.tsx';
import { EditKeyDialog } from './edit-key-dialog.tsx';
import type { ApiKey, NewKey } from './key-body.ts';
import { KeyTable } from './key-table.tsx';
import { NewKeyDialog } from './new-key-dialog.tsx';
import { RevokeDialog } from './revoke-dialog.tsx';
import { RotateDialog } from './rotate-dialog.tsx';

type Open =
  | { readonly kind: 'shown'; readonly made: NewKey }
  | { readonly kind: 'edit' | 'revoke' | 'rotate'; readonly record: ApiKey };

/** Settings, then API keys. */
export default function ApiKeys() {
  const keys = useLoad<{ readonly data: readonly ApiKey[] }>('/api/keys');
  const account = useLoad<Account>('/api/account');
  // Only the bars need it: the page is there without them.
  const usage = useLoad<Usage>('/api/usage?days=14');
  const calls = new Map(usage.data?.by_key.map((one) => [one.key_id, one.recent_days]));
  const { query, route } = useLocation();
  const isByEnd = query.order === 'end';
  const [open, setOpen] = useState<Open>();
  const [isNew, setNew] = useNew();
  const close = () => setOpen(undefined);
  const onMade = (made: NewKey) => {
    if (isNew) setNew(false);
    setOpen({ kind: 'shown', made });
    keys.reload();
  };
  const changed = () => {
    close();
    keys.reload();
  };
  const failed = [keys, account].find(({ failure }) => failure !== undefined);
  const canCreate = account.data !== undefined && account.data.tier !== null;
  const create = canCreate && (
    <button type="button" class="main" onClick={() => setNew(true)}>
      Create key
    </button>
  );
  return (
    <PageOf title="API keys" action={create}>
      {failed?.failure !== undefined && (
        <Failure failure={failed.failure} onRetry={failed.reload} />
      )}
      {keys.data === undefined || account.data === undefined ? (
        failed === undefined && <Skeleton rows={6} />
      ) : keys.data.data.length > 0 ? (
        <>
          <OrderSelect
            isByEnd={isByEnd}
            onOrder={(order) => route(`/app/settings/api-keys${order && `?order=${order}`}`, true)}
          />
          <KeyTable
            keys={isByEnd ? [...keys.data.data].sort(soonestEndFirst) : keys.data.data}
            calls={calls}
            onEdit={(record) => setOpen({ kind: 'edit', record })}
            onRotate={(record) => setOpen({ kind: 'rotate', record })}
            onRevoke={(record) => setOpen({ kind: 'revoke', record })}
          />
        </>
      ) : (
        <NoKeys canCreate={canCreate} />
      )}
      {isNew && canCreate && <CreateKeyDialog onClose={() => setNew(false)} onMade={onMade} />}
      {open?.kind === 'shown' && account.data !== undefined && (
        <NewKeyDialog made={open.made} services={account.data.services} onClose={close} />
      )}
      {open?.kind === 'rotate' && (
        <RotateDialog record={open.record} onClose={close} onMade={onMade} />
      )}
      {open?.kind === 'edit' && (
        <EditKeyDialog record={open.record} onClose={close} onChanged={changed} />
      )}
      {open?.kind === 'revoke' && (
        <RevokeDialog record={open.record} onClose={close} onRevoked={changed} />
      )}
    </PageOf>
  );
}

function NoKeys({ canCreate }: { readonly canCreate: boolean }) {
  return (
    <div class="empty">
      <p>No keys yet. A key identifies a program at the API and at streams.</p>
      {!canCreate && (
        <p>
          <a href="/app/plans">Choose a plan</a> first: keys belong to one.
        </p>
      )}
    </div>
  );
}

function OrderSelect(props: {
  readonly isByEnd: boolean;
  readonly onOrder: (order: string) => void;
}) {
  return (
    <select
      aria-label="Order"
      value={props.isByEnd ? 'end' : ''}
      onChange={({ currentTarget: { value } }) => props.onOrder(value)}
    >
      <option value="">Newest first</option>
      <option value="end">Soonest end first</option>
    </select>
  );
}

/** Live keys that end, then those without an end, then those that have ended. */
function soonestEndFirst(a: ApiKey, b: ApiKey): number {
  const rank = ({ live, expires_at: end }: ApiKey) =>
    live ? Date.parse(end ?? '9999-12-31T00:00:00Z') : Number.MAX_SAFE_INTEGER;
  return rank(a) - rank(b);
}
