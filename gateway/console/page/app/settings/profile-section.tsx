import { useState } from 'preact/hooks';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { Field } from '../parts/form.tsx';
import { useSession } from '../session/session-context.tsx';

/** Who the account and the signed-in user are; the name can be changed. */
export function ProfileSection(props: {
  readonly owner: {
    readonly id: string;
    readonly name: string;
    readonly status: string;
    readonly services: Readonly<Record<'api' | 'ingest' | 'stream', string>>;
  };
  readonly onRenamed: () => void;
}) {
  const { owner, onRenamed } = props;
  const { client, state } = useSession();
  const [isOpen, setOpen] = useState(false);
  const facts = [
    ['Name', owner.name],
    ['Signed in as', state.kind === 'signed-in' ? state.session.user.email : ''],
    ['Id', owner.id],
    ['State', owner.status],
    ['API', owner.services.api],
    ['Stream', owner.services.stream],
  ];
  return (
    <section class="part">
      <h2>Profile</h2>
      <dl class="facts">
        {facts.map(([title, value]) => (
          <div key={title}>
            <dt>{title}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <button type="button" onClick={() => setOpen(true)}>
        Change name
      </button>
      {isOpen && (
        <ConfirmDialog
          title="Change name"
          action="Save"
          onClose={() => setOpen(false)}
          onConfirm={async ({ name }) => {
            await client.send('PATCH', '/api/account', { name });
            setOpen(false);
            onRenamed();
          }}
        >
          <Field name="name" label="Name of the account" value={owner.name} />
        </ConfirmDialog>
      )}
    </section>
  );
}
