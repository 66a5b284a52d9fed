import type { ComponentChildren, InputHTMLAttributes } from 'preact';
import { useId, useState } from 'preact/hooks';
import { asFailure, type RequestFailed } from '../session/problem.ts';
import { Failure } from './states.tsx';

/** A form that stays as it is while it is sent, and after a refusal. */
export function Form(props: {
  readonly action: string;
  readonly onSubmit: (values: Readonly<Record<string, string>>, data: FormData) => Promise<void>;
  readonly children?: ComponentChildren;
}) {
  const { action, onSubmit, children } = props;
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<RequestFailed>();
  const submit = async (form: HTMLFormElement) => {
    const data = new FormData(form);
    const texts = [...data].filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    );
    setBusy(true);
    setFailure(undefined);
    try {
      await onSubmit(Object.fromEntries(texts), data);
    } catch (error) {
      setFailure(asFailure(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      onSubmit={(event) => {
        // The policy of the page forbids forms that the browser itself sends.
        event.preventDefault();
        if (!isBusy) void submit(event.currentTarget);
      }}
    >
      {children}
      {failure !== undefined && <Failure failure={failure} />}
      <button type="submit" class="main" aria-disabled={isBusy}>
        {action}
      </button>
    </form>
  );
}

/** A labelled field. */
export function Field(props: {
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  readonly type?: 'text' | 'email' | 'password' | 'datetime-local';
  readonly value?: string;
  readonly autocomplete?: string;
  readonly isOptional?: boolean;
}) {
  const { name, label, hint, type = 'text', value, autocomplete = 'off', isOptional } = props;
  const id = useId();
  const describedBy = hint === undefined ? {} : { 'aria-describedby': `${id}-hint` };
  const initial = value === undefined ? {} : { defaultValue: value };
  const own = { id, name, type, autocomplete, required: isOptional !== true };
  // The types of JSX know no input whose type is one of several.
  const attributes = {
    ...own,
    ...initial,
    ...describedBy,
  } as InputHTMLAttributes<HTMLInputElement>;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input {...attributes} />
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}
