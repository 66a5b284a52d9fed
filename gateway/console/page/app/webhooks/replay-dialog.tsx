import { useState } from 'preact/hooks';
import { Dialog } from '../parts/dialog.tsx';
import { Field, Form } from '../parts/form.tsx';
import { useSession } from '../session/session-context.tsx';

interface Part {
  readonly messages: number;
  readonly queued_messages: number;
  readonly pills: number;
  readonly next: object | null;
}

/** Stored pills of a symbol as new messages. @param props.path of the endpoint */
export function ReplayDialog(props: { readonly path: string; readonly onClose: () => void }) {
  const { path, onClose } = props;
  const { client } = useSession();
  const [isCounting, setCounting] = useState(true);
  const [done, setDone] = useState<Sum>();
  const run = async ({ symbol, from, to }: Readonly<Record<string, string>>) => {
    const dry = isCounting ? { dry_run: true } : {};
    let range: object | null = { symbol, from: timeOf(from), to: timeOf(to), ...dry };
    const sum = { pills: 0, messages: 0 };
    while (range !== null) {
      const part: Part = await client.send<Part>('POST', `${path}/replay`, range);
      sum.pills += part.pills;
      sum.messages += isCounting ? part.messages : part.queued_messages;
      range = part.next;
      setDone({ ...sum, isOver: range === null, isCount: isCounting });
    }
    setCounting(false);
  };
  return (
    <Dialog title="Replay" onClose={onClose}>
      <p>
        Posts the stored pills that match the filters of the endpoint again. Those that were posted
        keep their webhook-id.
      </p>
      <Form action={isCounting ? 'Count messages' : 'Replay'} onSubmit={run}>
        <Field name="symbol" label="Symbol" />
        <Field name="from" label="From" type="datetime-local" />
        <Field
          name="to"
          label="To"
          type="datetime-local"
          hint="In the time zone of this browser."
        />
      </Form>
      {done !== undefined && (
        <p role="status">
          {done.pills.toLocaleString('en')} pills in {done.messages.toLocaleString('en')}
          {done.isCount ? ' messages' : ' new messages'}
          {done.isOver ? '.' : ' so far …'}
          {done.isCount && done.isOver && ' Nothing is queued yet.'}
        </p>
      )}
      {!isCounting && (
        <button type="button" class="plain" onClick={() => setCounting(true)}>
          Count again
        </button>
      )}
    </Dialog>
  );
}

interface Sum {
  readonly pills: number;
  readonly messages: number;
  readonly isOver: boolean;
  readonly isCount: boolean;
}

/** The time of a field, as the API reads times. @throws if the browser let a wrong one through */
const timeOf = (local: string | undefined): string => new Date(local ?? '').toISOString();
