import { useMemo, useState } from 'preact/hooks';
import type { Account } from '../account/bodies.ts';
import { Copyable } from '../parts/copy.tsx';
import { useLoad } from '../parts/use-load.ts';
import type { ApiKey } from '../settings/key-body.ts';
import { Marked } from './marked.tsx';
import { callsOf, examplePath, type OpenApi, type Operation, operationsOf } from './reference.ts';
import { TryIt } from './try-it.tsx';

const RANKS = ['basic', 'pro', 'institutional'];

/** One operation: who may call it, its parameters, complete calls, and its answers. */
export function OperationPage({
  document,
  id,
}: {
  readonly document: OpenApi;
  readonly id: string;
}) {
  const operation = useMemo(
    () => operationsOf(document).find((one) => one.id === id),
    [document, id],
  );
  if (operation === undefined) {
    return (
      <p>
        There is no such operation. <a href="/app/docs">All operations</a>
      </p>
    );
  }
  return <Present key={id} of={operation} />;
}

function Present({ of: operation }: { readonly of: Operation }) {
  const { method, path, summary, description, parameters, answers, takesSession } = operation;
  const [given, setGiven] = useState<Readonly<Record<string, string>>>({});
  const called = examplePath(operation, given);
  const canTry = takesSession && method === 'GET';
  return (
    <>
      <p>
        <a href="/app/docs">All operations</a>
      </p>
      <h2>
        <code>
          {method} {path}
        </code>
      </h2>
      <p>{summary}.</p>
      {description !== undefined && (
        <p>
          <Marked text={description} />
        </p>
      )}
      <Access of={operation} />
      {parameters.length > 0 && <Parameters of={operation} given={given} onGiven={setGiven} />}
      {canTry && <TryIt path={called} />}
      {operation.scope !== undefined && <Calls of={operation} path={called} />}
      <section class="part">
        <h2>Answers</h2>
        {answers.map(({ status, description: text, example }) => (
          <details key={status} open={status.startsWith('2')}>
            <summary>
              <strong>{status}</strong> <Marked text={text} />
            </summary>
            {example !== undefined && <Copyable label={`Example of ${status}`} text={example} />}
          </details>
        ))}
      </section>
    </>
  );
}

/** Plan and credential that the call needs, beside those of the account. */
function Access({ of: { tier, scope, takesSession } }: { readonly of: Operation }) {
  const account = useLoad<Account>('/api/account');
  const own = account.data?.tier ?? null;
  const isIncluded =
    tier === undefined || (own !== null && RANKS.indexOf(own) >= RANKS.indexOf(tier));
  return (
    <dl class="facts">
      <div>
        <dt>Plan</dt>
        <dd>
          {tier === undefined ? 'Any' : `${tier} and above`}
          {account.data !== undefined && tier !== undefined && (
            <> ({isIncluded ? 'yours' : <a href="/app/plans">not in your plan</a>})</>
          )}
        </dd>
      </div>
      <div>
        <dt>Key</dt>
        <dd>{scope === undefined ? 'None: a session' : scope === '' ? 'Any' : `Scope ${scope}`}</dd>
      </div>
      <div>
        <dt>In this console</dt>
        <dd>{takesSession ? 'Your session may call it' : 'Keys only'}</dd>
      </div>
    </dl>
  );
}

function Parameters(props: {
  readonly of: Operation;
  readonly given: Readonly<Record<string, string>>;
  readonly onGiven: (given: Readonly<Record<string, string>>) => void;
}) {
  const { of: operation, given, onGiven } = props;
  return (
    <section class="part">
      <h2>Parameters</h2>
      <table class="stacked">
        <thead>
          <tr>
            <th>Name</th>
            <th>Value</th>
            <th>Meaning</th>
          </tr>
        </thead>
        <tbody>
          {operation.parameters.map(({ name, required, description, example }) => (
            <tr key={name}>
              <td data-title="Name">
                <code>{name}</code>
                {required === true && <span class="id">required</span>}
              </td>
              <td data-title="Value">
                <input
                  type="text"
                  aria-label={`Value of ${name}`}
                  placeholder={example === undefined ? '' : String(example)}
                  value={given[name] ?? ''}
                  onInput={({ currentTarget: { value } }) => {
                    const { [name]: _, ...others } = given;
                    onGiven(value === '' ? others : { ...others, [name]: value });
                  }}
                />
              </td>
              <td data-title="Meaning">
                <Marked text={description ?? ''} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** `read` and `webhooks:write` include `webhooks:read`. */
const grants = (own: string, needed: string) =>
  own === needed || (needed === 'webhooks:read' && (own === 'read' || own === 'webhooks:write'));

/** Complete calls, and which of the account's keys they work with. */
function Calls({ of: operation, path }: { readonly of: Operation; readonly path: string }) {
  const keys = useLoad<{ readonly data: readonly ApiKey[] }>('/api/keys');
  const { scope } = operation;
  const fitting = keys.data?.data.find(
    ({ live, scopes }) => live && (scope === '' || scopes.some((one) => grants(one, scope!))),
  );
  return (
    <section class="part">
      <h2>Call it</h2>
      {keys.data !== undefined && (
        <p class="hint">
          {fitting === undefined ? (
            <>
              None of your keys may: <a href="/app/settings/api-keys">create one</a>.
            </>
          ) : (
            <>
              <code>PILLOLE_KEY</code> holds a key such as {fitting.name} (
              <code>{fitting.hint}</code>).
            </>
          )}
        </p>
      )}
      {callsOf(operation, path).map(([label, text]) => (
        <Copyable key={label} label={label} text={text} />
      ))}
    </section>
  );
}
