import { Time } from '../parts/time.tsx';

export interface DedicatedSocket {
  readonly name: string;
  readonly url: string;
  readonly label: string;
  readonly state: string;
  readonly reason: string | null;
  readonly connections: number;
  readonly lag_records: number | null;
  readonly queue_ms: number;
  readonly replaced_by: string | null;
  readonly expires_at: string | null;
}

/** Address, state, lag and queue of each socket. */
export function DedicatedTable(props: {
  readonly sockets: readonly DedicatedSocket[];
  readonly onRotate: (socket: DedicatedSocket) => void;
  readonly onRemove: (socket: DedicatedSocket) => void;
}) {
  const { sockets, onRotate, onRemove } = props;
  return (
    <table class="stacked">
      <thead>
        <tr>
          <th>Label</th>
          <th>State</th>
          <th class="number">Connections</th>
          <th class="number">Lag</th>
          <th class="number">Queue</th>
          <th>
            <span class="unseen">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {sockets.map((socket) => (
          <tr key={socket.name}>
            <td data-title="Label" class="wide">
              {socket.label}
              <code class="id">{socket.url}</code>
            </td>
            <td data-title="State">
              {socket.state}
              {socket.reason !== null && `: ${socket.reason}`}
              {socket.expires_at !== null && (
                <>
                  , until <Time of={socket.expires_at} />
                </>
              )}
            </td>
            <td data-title="Connections" class="number">
              {socket.connections.toLocaleString('en')}
            </td>
            <td data-title="Lag" class="number">
              {socket.lag_records ?? 'unknown'}
            </td>
            <td data-title="Queue" class="number">
              {socket.queue_ms.toLocaleString('en')} ms
            </td>
            <td class="actions">
              {socket.replaced_by === null && (
                <button
                  type="button"
                  aria-label={`Rotate ${socket.label}`}
                  onClick={() => onRotate(socket)}
                >
                  Rotate
                </button>
              )}
              <button
                type="button"
                class="danger"
                aria-label={`Remove ${socket.label}`}
                onClick={() => onRemove(socket)}
              >
                Remove
              </button>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
