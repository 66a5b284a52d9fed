import { Time } from '../parts/time.tsx';
import { CallBars } from './call-bars.tsx';
import type { ApiKey } from './key-body.ts';

interface KeyActions {
  readonly onEdit: (key: ApiKey) => void;
  readonly onRotate: (key: ApiKey) => void;
  readonly onRevoke: (key: ApiKey) => void;
}

/** Calls of each of the last 14 days, by key. */
export type RecentCalls = ReadonlyMap<string, readonly number[]>;

/** Live keys first; those that ended stay listed for 30 days. */
export function KeyTable(
  props: KeyActions & { readonly keys: readonly ApiKey[]; readonly calls: RecentCalls },
) {
  const { keys, calls, onEdit, onRotate, onRevoke } = props;
  return (
    <table class="stacked">
      <thead>
        <tr>
          <th>Name</th>
          <th>Key</th>
          <th>Scopes</th>
          <th>Networks</th>
          <th>Calls, 14 days</th>
          <th>Last use</th>
          <th>Ends</th>
          <th>
            <span class="unseen">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {keys.map((key) => (
          <KeyRow
            key={key.id}
            of={key}
            calls={calls.get(key.id) ?? []}
            {...{ onEdit, onRotate, onRevoke }}
          />
        ))}
      </tbody>
    </table>
  );
}

function KeyRow(props: KeyActions & { readonly of: ApiKey; readonly calls: readonly number[] }) {
  const { of: key, calls, onEdit, onRotate, onRevoke } = props;
  return (
    <tr class={key.live ? undefined : 'ended'}>
      <td data-title="Name">
        {key.name}
        <code class="id">{key.id}</code>
      </td>
      <td data-title="Key">
        <code>{key.hint}</code>
      </td>
      <td data-title="Scopes">{key.scopes.join(', ')}</td>
      <td data-title="Networks">{key.allow_cidrs.join(', ') || 'Any'}</td>
      <td data-title="Calls, 14 days">
        <CallBars days={calls} />
      </td>
      <td data-title="Last use">
        <Time of={key.last_used_at} otherwise="Never" />
      </td>
      <td data-title="Ends">
        {key.revoked_at !== null && 'Revoked '}
        <Time of={key.revoked_at ?? key.expires_at} otherwise="Never" />
      </td>
      <td class="actions">
        {key.live && (
          <button type="button" aria-label={`Edit ${key.name}`} onClick={() => onEdit(key)}>
            Edit
          </button>
        )}
        {key.live && key.replaced_by === null && (
          <button type="button" aria-label={`Rotate ${key.name}`} onClick={() => onRotate(key)}>
            Rotate
          </button>
        )}
        {key.live && (
          <button
            type="button"
            class="danger"
            aria-label={`Revoke ${key.name}`}
            onClick={() => onRevoke(key)}
          >
            Revoke
          </button>
        )}
      </td>
    </tr>
  );
}
