import { Dialog } from '../parts/dialog.tsx';
import { Field, Form } from '../parts/form.tsx';
import { useSession } from '../session/session-context.tsx';
import { EVENT_TYPES } from './bodies.ts';

/** Address, events and filters of a new endpoint. @param props.onMade receives the secret */
export function CreateEndpointDialog(props: {
  readonly onClose: () => void;
  readonly onMade: (secret: string) => void;
}) {
  const { onClose, onMade } = props;
  const { client } = useSession();
  const create = async (values: Readonly<Record<string, string>>, data: FormData) => {
    const { url, description, symbols = '', confidence } = values;
    const { secret } = await client.send<{ readonly secret: string }>('POST', '/api/webhooks', {
      url,
      event_types: data.getAll('event'),
      symbols: symbols.split(/[\s,]+/).filter((symbol) => symbol !== ''),
      ...(description ? { description } : {}),
      ...(confidence ? { min_confidence: Number(confidence) } : {}),
    });
    onMade(secret);
  };
  return (
    <Dialog title="Create endpoint" onClose={onClose}>
      <Form action="Create" onSubmit={create}>
        <Field name="url" label="Address" hint="https, on port 443 or 8443." />
        <Field name="description" label="Description (optional)" isOptional />
        <fieldset>
          <legend>Events</legend>
          {EVENT_TYPES.map(([type, meaning]) => (
            <label key={type}>
              <input
                type="checkbox"
                name="event"
                value={type}
                defaultChecked={type === 'pill.published'}
              />
              <span>
                <code>{type}</code> {meaning}
              </span>
            </label>
          ))}
        </fieldset>
        <Field
          name="symbols"
          label="Symbols (optional)"
          hint="For example 7203.T, separated by commas. Empty: all."
          isOptional
        />
        <Field
          name="confidence"
          label="Lowest confidence (optional)"
          hint="From 0 to 100."
          isOptional
        />
      </Form>
    </Dialog>
  );
}
