import { Field } from '../parts/form.tsx';
import { SCOPES } from './key-body.ts';

/** What a key may do. */
export function ScopeFields({ checked }: { readonly checked: readonly string[] }) {
  return (
    <fieldset>
      <legend>Scopes</legend>
      <div class="buttons">
        <button type="button" onClick={(event) => checkAll(event.currentTarget, true)}>
          All
        </button>
        <button type="button" onClick={(event) => checkAll(event.currentTarget, false)}>
          None
        </button>
      </div>
      {SCOPES.map(([scope, meaning]) => (
        <label key={scope}>
          <input
            type="checkbox"
            name="scope"
            value={scope}
            defaultChecked={checked.includes(scope)}
          />
          <span>
            <code>{scope}</code> {meaning}
          </span>
        </label>
      ))}
    </fieldset>
  );
}

/** The form keeps the boxes: they are not drawn from a state. */
function checkAll(button: HTMLElement, isChecked: boolean): void {
  const boxes = button.closest('fieldset')!.querySelectorAll('input');
  for (const box of boxes) box.checked = isChecked;
}

/** From where a key may be used. */
export function NetworksField({ value = '' }: { readonly value?: string }) {
  return (
    <Field
      name="networks"
      label="Networks (optional)"
      hint="For example 203.0.113.0/24, separated by commas. Empty: any address."
      value={value}
      isOptional
    />
  );
}

/** The entries of a field, separated by commas or spaces. */
export const listOf = (text: string): readonly string[] =>
  text.split(/[\s,]+/).filter((entry) => entry !== '');
