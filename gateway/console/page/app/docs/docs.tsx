import { useMemo } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { PageOf } from '../parts/page.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { FrameReference } from './frame-reference.tsx';
import { OperationPage } from './operation.tsx';
import { type OpenApi, type Operation, operationsOf } from './reference.ts';

/** The reference of REST and stream, with the plan and the key of the account. */
export default function Docs() {
  const { query } = useLocation();
  return (
    <PageOf title="Docs">
      <nav class="tabs" aria-label="Reference">
        <a href="/app/docs" aria-current={query.view === undefined ? 'page' : undefined}>
          REST
        </a>
        <a
          href="/app/docs?view=stream"
          aria-current={query.view === undefined ? undefined : 'page'}
        >
          Stream
        </a>
        <a href="/docs" target="_self">
          Whole reference
        </a>
      </nav>
      {query.view === 'stream' ? <FrameReference /> : <RestReference />}
    </PageOf>
  );
}

function RestReference() {
  const { query } = useLocation();
  const document = useLoad<OpenApi>('/openapi.json');
  return (
    <WhenLoaded of={document} rows={12}>
      {(data) =>
        query.op === undefined ? (
          <OperationList document={data} />
        ) : (
          <OperationPage document={data} id={query.op} />
        )
      }
    </WhenLoaded>
  );
}

function OperationList({ document }: { readonly document: OpenApi }) {
  const { query, route } = useLocation();
  const operations = useMemo(() => operationsOf(document), [document]);
  const filter = (query.q ?? '').toLowerCase();
  const found = operations.filter(({ path, summary, tag }) =>
    `${path} ${summary} ${tag}`.toLowerCase().includes(filter),
  );
  return (
    <>
      <input
        type="search"
        aria-label="Filter operations"
        placeholder="Path or word"
        value={query.q ?? ''}
        onInput={({ currentTarget: { value } }) =>
          route(`/app/docs${value && `?${new URLSearchParams({ q: value })}`}`, true)
        }
      />
      {found.length === 0 && <p class="hint">No operation has these words.</p>}
      {byTag(found).map(([tag, ofTag]) => (
        <section class="part" key={tag}>
          <h2>{tag}</h2>
          <table class="stacked">
            <thead>
              <tr>
                <th>Operation</th>
                <th>What it does</th>
                <th>Plan</th>
              </tr>
            </thead>
            <tbody>
              {ofTag.map(({ id, method, path, summary, tier }) => (
                <tr key={id}>
                  <td data-title="Operation">
                    <a href={`/app/docs?${new URLSearchParams({ op: id })}`}>
                      <code>
                        {method} {path}
                      </code>
                    </a>
                  </td>
                  <td data-title="What it does">{summary}</td>
                  <td data-title="Plan">{tier ?? 'any'}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      ))}
    </>
  );
}

function byTag(operations: readonly Operation[]): [string, Operation[]][] {
  const tags = new Map<string, Operation[]>();
  for (const operation of operations) {
    const ofTag = tags.get(operation.tag);
    if (ofTag === undefined) tags.set(operation.tag, [operation]);
    else ofTag.push(operation);
  }
  return [...tags];
}
