import { Dialog } from '../parts/dialog.tsx';
import { Form } from '../parts/form.tsx';
import { useSession } from '../session/session-context.tsx';
import type { ApiKey, NewKey } from './key-body.ts';

const OVERLAPS = [
  ['3600', '1 hour'],
  ['86400', '1 day'],
  ['604800', '7 days'],
  ['0', 'None: it ends at once'],
] as const;

/** Creates a successor; the old key stays valid for the overlap. */
export function RotateDialog(props: {
  readonly record: ApiKey;
  readonly onClose: () => void;
  readonly onMade: (made: NewKey) => void;
}) {
  const { record, onClose, onMade } = props;
  const { client } = useSession();
  const rotate = async ({ overlap }: Readonly<Record<string, string>>) => {
    const body = { overlap_s: Number(overlap) };
    onMade(await client.send<NewKey>('POST', `/api/keys/${record.id}/rotate`, body));
  };
  return (
    <Dialog title={`Rotate ${record.name}`} onClose={onClose}>
      <Form action="Create successor" onSubmit={rotate}>
        <div class="field">
          <label for="overlap">The old key stays valid for</label>
          <select id="overlap" name="overlap" defaultValue="86400">
            {OVERLAPS.map(([seconds, title]) => (
              <option key={seconds} value={seconds} selected={seconds === '86400'}>
                {title}
              </option>
            ))}
          </select>
        </div>
      </Form>
    </Dialog>
  );
}
