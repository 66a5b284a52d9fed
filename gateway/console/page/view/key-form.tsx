import { useState } from 'preact/hooks';

/** Asks for a key if there is no demo, and nobody is signed in. */
export function KeyForm({ onKey }: { readonly onKey: (key: string) => void }) {
  return (
    <>
      <SecretForm label="API key" placeholder="pil_live_…" action="Connect" onSecret={onKey}>
        Paste an API key of a Pro or Institutional account to watch its market. The key stays in the
        memory of this page and is gone after a reload.
      </SecretForm>
      <p class="sign-in">
        Or <a href="/app/sign-in">sign in</a> to the console, then open this page again.
      </p>
    </>
  );
}

/** Asks for a secret, which goes nowhere else. @param props.children a hint */
export function SecretForm(props: {
  readonly label: string;
  readonly placeholder: string;
  /** Of the button. */
  readonly action: string;
  readonly onSecret: (secret: string) => void;
  readonly children: string;
}) {
  const { label, placeholder, action, onSecret, children } = props;
  const [secret, setSecret] = useState('');
  return (
    <form
      class="key-form"
      onSubmit={(event) => {
        event.preventDefault();
        if (secret.trim() !== '') onSecret(secret.trim());
      }}
    >
      <p id="key-hint">{children}</p>
      <label for="key">{label}</label>
      <div class="line">
        <input
          id="key"
          type="password"
          autocomplete="off"
          spellcheck={false}
          placeholder={placeholder}
          aria-describedby="key-hint"
          value={secret}
          onInput={({ currentTarget }) => setSecret(currentTarget.value)}
        />
        <button type="submit">{action}</button>
      </div>
    </form>
  );
}
