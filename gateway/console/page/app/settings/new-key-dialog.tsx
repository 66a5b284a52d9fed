import { Copyable } from '../parts/copy.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { examplesOf } from './examples.ts';
import type { NewKey } from './key-body.ts';

/** The key beside its id, once, with complete calls. */
export function NewKeyDialog(props: {
  readonly made: NewKey;
  readonly services: { readonly api: string };
  readonly onClose: () => void;
}) {
  const { made, services, onClose } = props;
  return (
    <Dialog title="Your new key" onClose={onClose}>
      <p class="notice">Copy the key now: it is never shown again.</p>
      <Copyable label="Key" text={made.key} />
      <p class="hint">
        {made.record.name} · <code>{made.record.id}</code>
      </p>
      {examplesOf(services.api, made.key).map(([title, text]) => (
        <Copyable key={title} label={title} text={text} />
      ))}
      <button type="button" class="main" onClick={onClose}>
        I have copied it
      </button>
    </Dialog>
  );
}
