import { useId } from 'preact/hooks';

/** The text of a question or reply. */
export function MessageField({ hint }: { readonly hint?: string }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>Message</label>
      <textarea id={id} name="message" rows={8} maxLength={10_000} required />
      {hint !== undefined && <p class="hint">{hint}</p>}
    </div>
  );
}
