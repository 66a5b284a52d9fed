import { useState } from 'preact/hooks';
import type { Account } from '../account/bodies.ts';
import { PageOf } from '../parts/page.tsx';
import { Failure, Skeleton } from '../parts/states.tsx';
import { useLoad } from '../parts/use-load.ts';
import { CreateKeyDialog } from './create-key-dialog.tsx';
import { EditKeyDialog } from './edit-key-dialog.tsx';
import type { ApiKey, NewKey } from './key-body.ts';
import { KeyTable } from './key-table.tsx';
import { NewKeyDialog } from './new-key-dialog.tsx';
import { RevokeDialog } from './revoke-dialog.tsx';
import { RotateDialog } from './rotate-dialog.tsx';

type Open =
  | { readonly kind: 'create' }
  | { readonly kind: 'shown'; readonly made: NewKey }
  | { readonly kind: 'edit' | 'revoke' | 'rotate'; readonly record: ApiKey };

/** Settings, then API keys. */
export default function ApiKeys() {
  const keys = useLoad<{ readonly data: readonly ApiKey[] }>('/api/keys');
  const account = useLoad<Account>('/api/account');
  const [open, setOpen] = useState<Open>();
  const close = () => setOpen(undefined);
  const onMade = (made: NewKey) => {
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
    <button type="button" class="main" onClick={() => setOpen({ kind: 'create' })}>
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
        <KeyTable
          keys={keys.data.data}
          onEdit={(record) => setOpen({ kind: 'edit', record })}
          onRotate={(record) => setOpen({ kind: 'rotate', record })}
          onRevoke={(record) => setOpen({ kind: 'revoke', record })}
        />
      ) : (
        <div class="empty">
          <p>No keys yet. A key identifies a program at the API and at streams.</p>
          {!canCreate && (
            <p>
              <a href="/app/plans">Choose a plan</a> first: keys belong to one.
            </p>
          )}
        </div>
      )}
      {open?.kind === 'create' && <CreateKeyDialog onClose={close} onMade={onMade} />}
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
