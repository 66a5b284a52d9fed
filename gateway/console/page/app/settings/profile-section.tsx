import { useState } from 'preact/hooks';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { CopyButton } from '../parts/copy.tsx';
import { Facts } from '../parts/facts.tsx';
import { Field } from '../parts/form.tsx';
import { zoneName } from '../parts/time.tsx';
import { useSession } from '../session/session-context.tsx';

export interface Owner {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly services: Readonly<Record<'api' | 'ingest' | 'stream', string>>;
}

/** Who the account and the signed-in user are; the name can be changed. */
export function ProfileSection(props: { readonly owner: Owner; readonly onRenamed: () => void }) {
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
    ['Time zone of this browser', zoneName()],
  ] as const;
  return (
    <section>
      <Facts of={facts} />
      <p class="buttons">
        <CopyButton what="account id" text={owner.id} />
        <CopyButton what="API address" text={owner.services.api} />
        <CopyButton what="stream address" text={owner.services.stream} />
      </p>
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
