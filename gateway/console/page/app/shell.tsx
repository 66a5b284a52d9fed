import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { ThemeToggle } from '../view/theme.tsx';
import { Notice } from './notices/notice.tsx';
import { Notices } from './notices/notices.tsx';
import { GROUPS } from './pages.ts';
import { Palette } from './palette/palette.tsx';
import { Failure, Skeleton } from './parts/states.tsx';
import { zoneName } from './parts/time.tsx';
import type { Session } from './session/client.ts';
import { asFailure, type RequestFailed } from './session/problem.ts';
import { useSession } from './session/session-context.tsx';

/** Navigation around a page of the account. */
export function Shell(props: { readonly session: Session; readonly children: ComponentChildren }) {
  const { session, children } = props;
  const { path } = useLocation();
  const [failure, setFailure] = useState<RequestFailed>();
  // A phone shows the navigation only while it is asked for.
  const [isOpen, setOpen] = useState(false);
  // The page reads its data meanwhile; notices that came later would move it.
  const [isSettled, setSettled] = useState(false);
  useEffect(() => setOpen(false), [path]);
  const link = ([href, title]: readonly [string, string]) => (
    <a key={href} href={href} aria-current={isWithin(path, href) ? 'page' : undefined}>
      {title}
    </a>
  );
  return (
    <div class="shell">
      <header class={isOpen ? 'side open' : 'side'}>
        <div class="bar">
          <a class="name" href="/app">
            pillole
          </a>
          <button
            type="button"
            class="menu"
            aria-expanded={isOpen}
            aria-controls="navigation"
            onClick={() => setOpen(!isOpen)}
          >
            Menu
          </button>
        </div>
        <nav id="navigation" aria-label="Console">
          {GROUPS.map(([title, links]) => (
            <div key={title}>
              {title !== '' && <span class="group">{title}</span>}
              {links.map(link)}
            </div>
          ))}
        </nav>
        <Palette />
        <Person session={session} onFailure={setFailure} />
      </header>
      <main>
        {failure !== undefined && <Failure failure={failure} />}
        {!session.user.email_verified && (
          <Notice title="Not verified">
            Open the link in our mail. Until then, no plan and no keys.
          </Notice>
        )}
        <Notices onSettled={() => setSettled(true)} />
        {!isSettled && <Skeleton rows={8} />}
        <div class="page" hidden={!isSettled}>
          {children}
        </div>
      </main>
    </div>
  );
}

/** Who is signed in, and the way out. */
function Person(props: {
  readonly session: Session;
  readonly onFailure: (failure: RequestFailed) => void;
}) {
  const { session, onFailure } = props;
  const { route } = useLocation();
  const { client } = useSession();
  const signOut = async () => {
    try {
      await client.send('DELETE', '/api/session');
      client.useSession(undefined);
      route('/app/sign-in');
    } catch (error) {
      onFailure(asFailure(error));
    }
  };
  return (
    <div class="who">
      <span title={session.user.email}>{session.user.email}</span>
      <span title="The time zone of this browser; other times say UTC">Times: {zoneName()}</span>
      <ThemeToggle />
      <button type="button" onClick={signOut}>
        Sign out
      </button>
    </div>
  );
}

/** Whether a page is the link's, or one below that has no link of its own. */
function isWithin(path: string, href: string): boolean {
  return path === href || (href !== '/app' && path.startsWith(`${href}/`));
}
