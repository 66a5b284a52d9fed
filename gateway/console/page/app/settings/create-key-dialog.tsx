import { Dialog } from '../parts/dialog.tsx';
import { Field, Form } from '../parts/form.tsx';
import { useSession } from '../session/session-context.tsx';
import { DEFAULT_SCOPES, type NewKey } from './key-body.ts';
import { listOf, NetworksField, ScopeFields } from './key-fields.tsx';

const DAY_MS = 86_400_000;
const EXPIRIES = [
  ['', 'Never'],
  ['30', 'In 30 days'],
  ['90', 'In 90 days'],
  ['365', 'In a year'],
] as const;

/** Name, scopes, expiry and networks of a new key. */
export function CreateKeyDialog(props: {
  readonly onClose: () => void;
  readonly onMade: (made: NewKey) => void;
}) {
  const { onClose, onMade } = props;
  const { client } = useSession();
  const create = async (values: Readonly<Record<string, string>>, data: FormData) => {
    const { name, days, networks = '' } = values;
    const expiry = days ? new Date(Date.now() + Number(days) * DAY_MS).toISOString() : undefined;
    const made = await client.send<NewKey>('POST', '/api/keys', {
      name,
      scopes: data.getAll('scope'),
      allow_cidrs: listOf(networks),
      ...(expiry === undefined ? {} : { expires_at: expiry }),
    });
    onMade(made);
  };
  return (
    <Dialog title="Create key" onClose={onClose}>
      <Form action="Create" onSubmit={create}>
        <Field name="name" label="Name" hint="For example the program that uses the key." />
        <ScopeFields checked={DEFAULT_SCOPES} />
        <div class="field">
          <label for="key-days">Expires</label>
          <select id="key-days" name="days">
            {EXPIRIES.map(([days, title]) => (
              <option key={days} value={days}>
                {title}
              </option>
            ))}
          </select>
        </div>
        <NetworksField />
      </Form>
    </Dialog>
  );
}
