import { useEffect } from 'preact/hooks';
import { ErrorBoundary, LocationProvider, lazy, Route, Router, useLocation } from 'preact-iso';
import { ProofDialog } from './entry/proof-dialog.tsx';
import { Failure, Skeleton } from './parts/states.tsx';
import { SessionProvider, useSession } from './session/session-context.tsx';
import { Shell } from './shell.tsx';

// Every page is a chunk of its own.
const SignIn = lazy(() => import('./entry/sign-in.tsx'));
const SignUp = lazy(() => import('./entry/sign-up.tsx'));
const Verify = lazy(() => import('./entry/verify.tsx'));
const Forgotten = lazy(() => import('./entry/forgotten.tsx'));
const Reset = lazy(() => import('./entry/reset.tsx'));
const Overview = lazy(() => import('./account/overview.tsx'));
const Plans = lazy(() => import('./account/plans.tsx'));
const Usage = lazy(() => import('./account/usage.tsx'));
const ApiKeys = lazy(() => import('./settings/api-keys.tsx'));
const Security = lazy(() => import('./settings/security.tsx'));
const Billing = lazy(() => import('./settings/billing.tsx'));
const OwnAccount = lazy(() => import('./settings/account.tsx'));
const Endpoints = lazy(() => import('./webhooks/endpoints.tsx'));
const EndpointPage = lazy(() => import('./webhooks/endpoint.tsx'));
const Streams = lazy(() => import('./streams/streams.tsx'));

/** The console: pages of an account, and the way to one. */
export function App() {
  return (
    <LocationProvider scope="/app">
      <SessionProvider Proof={ProofDialog}>
        <ErrorBoundary>
          <Router>
            <Route path="/app/sign-in" component={SignIn} />
            <Route path="/app/sign-up" component={SignUp} />
            <Route path="/app/verify" component={Verify} />
            <Route path="/app/forgotten" component={Forgotten} />
            <Route path="/app/reset" component={Reset} />
            {/* A route with an asterisk leaves the rest of the path to the inner router. */}
            <Route path="/app" component={SignedInPages} />
            <Route path="/app/*" component={SignedInPages} />
          </Router>
        </ErrorBoundary>
      </SessionProvider>
    </LocationProvider>
  );
}

function SignedInPages() {
  const { state, reload } = useSession();
  const { url, route } = useLocation();
  const isStranger = state.kind === 'none';
  useEffect(() => {
    if (isStranger) route(`/app/sign-in?to=${encodeURIComponent(url)}`, true);
  }, [isStranger]);
  if (state.kind === 'failed') {
    return (
      <main class="entry">
        <Failure failure={state.failure} onRetry={reload} />
      </main>
    );
  }
  if (state.kind !== 'signed-in') {
    return (
      <main class="entry">
        <Skeleton rows={4} />
      </main>
    );
  }
  return (
    <Shell session={state.session}>
      <Router>
        <Route path="/" component={Overview} />
        <Route path="/plans" component={Plans} />
        <Route path="/usage" component={Usage} />
        <Route path="/streams" component={Streams} />
        <Route path="/webhooks" component={Endpoints} />
        <Route path="/webhooks/:id" component={EndpointPage} />
        <Route path="/settings/api-keys" component={ApiKeys} />
        <Route path="/settings/security" component={Security} />
        <Route path="/settings/billing" component={Billing} />
        <Route path="/settings/account" component={OwnAccount} />
        <Route default component={Unknown} />
      </Router>
    </Shell>
  );
}

function Unknown() {
  return (
    <section>
      <h1>No such page</h1>
      <p>
        <a href="/app">Overview</a>
      </p>
    </section>
  );
}
