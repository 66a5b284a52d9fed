import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { Field } from '../parts/form.tsx';
import { useSession } from '../session/session-context.tsx';
import type { ApiKey } from './key-body.ts';
import { listOf, NetworksField, ScopeFields } from './key-fields.tsx';

/** Name, scopes and networks of a key that exists. */
export function EditKeyDialog(props: {
  readonly record: ApiKey;
  readonly onClose: () => void;
  readonly onChanged: () => void;
}) {
  const { record, onClose, onChanged } = props;
  const { client } = useSession();
  return (
    <ConfirmDialog
      title={`Edit ${record.name}`}
      action="Save"
      onClose={onClose}
      onConfirm={async ({ name, networks = '' }, data) => {
        await client.send('PATCH', `/api/keys/${record.id}`, {
          name,
          scopes: data.getAll('scope'),
          allow_cidrs: listOf(networks),
        });
        onChanged();
      }}
    >
      <Field name="name" label="Name" value={record.name} />
      <ScopeFields checked={record.scopes} />
      <NetworksField value={record.allow_cidrs.join(', ')} />
      <p class="hint">
        In effect everywhere within a second; open sockets that it bars are closed.
      </p>
    </ConfirmDialog>
  );
}
