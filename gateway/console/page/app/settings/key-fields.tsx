import { Field } from '../parts/form.tsx';
import { SCOPES } from './key-body.ts';

/** What a key may do. */
export function ScopeFields({ checked }: { readonly checked: readonly string[] }) {
  return (
    <fieldset>
      <legend>Scopes</legend>
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
