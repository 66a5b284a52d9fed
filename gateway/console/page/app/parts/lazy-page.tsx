import type { ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
import { lazy } from 'preact-iso';

type Module = { readonly default: ComponentType };

/** A page whose code is read when it is opened; if that fails, the page says so. */
export function page(load: () => Promise<Module>) {
  return lazy(() => load().catch((): Module => ({ default: NotLoaded })));
}

/** After an update of the platform, an open tab asks for files that no longer exist. */
function NotLoaded() {
  useEffect(() => {
    // Nothing of this page can be lost.
    const reload = () => location.reload();
    addEventListener('online', reload);
    return () => removeEventListener('online', reload);
  }, []);
  return (
    <section>
      <h1>Not loaded</h1>
      <div class="failure" role="alert">
        <p>
          <strong>This page could not be read.</strong>
        </p>
        <p>The console may have been updated since it was opened, or the connection failed.</p>
        <button type="button" onClick={() => location.reload()}>
          Reload
        </button>
      </div>
    </section>
  );
}
