import { useState } from 'preact/hooks';

/** Asks for a key if there is no demo. */
export function KeyForm({ onKey }: { readonly onKey: (key: string) => void }) {
  const [key, setKey] = useState('');
  return (
    <form
      class="key-form"
      onSubmit={(event) => {
        event.preventDefault();
        if (key.trim() !== '') onKey(key.trim());
      }}
    >
      <p id="key-hint">
        Paste an API key of a Pro or Institutional account to watch its market. The key stays in the
        memory of this page and is gone after a reload.
      </p>
      <label for="key">API key</label>
      <div class="line">
        <input
          id="key"
          type="password"
          autocomplete="off"
          spellcheck={false}
          placeholder="pil_live_…"
          aria-describedby="key-hint"
          value={key}
          onInput={({ currentTarget }) => setKey(currentTarget.value)}
        />
        <button type="submit">Connect</button>
      </div>
    </form>
  );
}
