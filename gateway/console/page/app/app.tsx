import { useEffect, useState } from 'preact/hooks';
import { ErrorBoundary, LocationProvider, Route, Router, useLocation } from 'preact-iso';
import { ProofDialog } from './entry/proof-dialog.tsx';
import { page } from './parts/lazy-page.tsx';
import { Failure, Skeleton } from './parts/states.tsx';
import { asFailure } from './session/problem.ts';
import { SessionProvider, useSession } from './session/session-context.tsx';
import { Shell } from './shell.tsx';

// Every page is a chunk of its own.
const SignIn = page(() => import('./entry/sign-in.tsx'));
const SignUp = page(() => import('./entry/sign-up.tsx'));
const Verify = page(() => import('./entry/verify.tsx'));
const Join = page(() => import('./entry/join.tsx'));
const Forgotten = page(() => import('./entry/forgotten.tsx'));
const Reset = page(() => import('./entry/reset.tsx'));
const Overview = page(() => import('./account/overview.tsx'));
const Live = page(() => import('./live/live.tsx'));
const Generator = page(() => import('./generator/generator.tsx'));
const Plans = page(() => import('./account/plans.tsx'));
const Usage = page(() => import('./account/usage.tsx'));
const ApiKeys = page(() => import('./settings/api-keys.tsx'));
const Profile = page(() => import('./settings/profile.tsx'));
const Security = page(() => import('./settings/security.tsx'));
const Billing = page(() => import('./settings/billing.tsx'));
const InvoicePage = page(() => import('./settings/invoice.tsx'));
const OwnAccount = page(() => import('./settings/account.tsx'));
const Endpoints = page(() => import('./webhooks/endpoints.tsx'));
const EndpointPage = page(() => import('./webhooks/endpoint.tsx'));
const Symbols = page(() => import('./symbols/symbols.tsx'));
const SymbolPage = page(() => import('./symbols/symbol.tsx'));
const Analytics = page(() => import('./analytics/analytics.tsx'));
const Status = page(() => import('./service/status.tsx'));
const Tickets = page(() => import('./support/tickets.tsx'));
const TicketPage = page(() => import('./support/ticket.tsx'));
const Docs = page(() => import('./docs/docs.tsx'));
const Streams = page(() => import('./streams/streams.tsx'));
const Inspector = page(() => import('./streams/inspector.tsx'));

/** The console: pages of an account, and the way to one. */
export function App() {
  const [fault, setFault] = useState<Error>();
  if (fault !== undefined) {
    return (
      <main class="entry">
        <Failure failure={asFailure(fault)} onRetry={() => location.reload()} />
      </main>
    );
  }
  return (
    <LocationProvider scope="/app">
      <SessionProvider Proof={ProofDialog}>
        <ErrorBoundary onError={setFault}>
          <Router>
            <Route path="/app/sign-in" component={SignIn} />
            <Route path="/app/sign-up" component={SignUp} />
            <Route path="/app/verify" component={Verify} />
            <Route path="/app/join" component={Join} />
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
        <Route path="/live" component={Live} />
        <Route path="/generator" component={Generator} />
        <Route path="/plans" component={Plans} />
        <Route path="/usage" component={Usage} />
        <Route path="/symbols" component={Symbols} />
        <Route path="/symbol" component={SymbolPage} />
        <Route path="/analytics" component={Analytics} />
        <Route path="/status" component={Status} />
        <Route path="/support" component={Tickets} />
        <Route path="/support/:id" component={TicketPage} />
        <Route path="/docs" component={Docs} />
        <Route path="/streams" component={Streams} />
        <Route path="/streams/frames" component={Inspector} />
        <Route path="/webhooks" component={Endpoints} />
        <Route path="/webhooks/:id" component={EndpointPage} />
        <Route path="/settings/api-keys" component={ApiKeys} />
        <Route path="/settings/profile" component={Profile} />
        <Route path="/settings/security" component={Security} />
        <Route path="/settings/billing" component={Billing} />
        <Route path="/settings/billing/:id" component={InvoicePage} />
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
