import { Copyable } from '../parts/copy.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Facts } from '../parts/facts.tsx';
import { Time } from '../parts/time.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import type { Attempt } from './bodies.ts';

interface Message {
  readonly body: string;
  readonly pills: number;
}

/** What was posted, and what the receiver answered to one attempt. @param path of the endpoint */
export function MessageDialog(props: {
  readonly path: string;
  readonly of: Attempt;
  readonly onClose: () => void;
}) {
  const { path, of: one, onClose } = props;
  const message = useLoad<Message>(`${path}/deliveries/${one.message_id}`);
  return (
    <Dialog title={`Attempt ${one.attempt} of ${one.message_id}`} onClose={onClose}>
      <Facts
        of={[
          ['Event', one.event_type],
          ['Time', <Time key="at" of={one.at} />],
          ['Outcome', `${one.outcome} ${one.status ?? one.reason ?? ''}`],
          ['Took', `${Math.round(one.latency_ms)} ms`],
        ]}
      />
      {one.detail !== null && <p>{one.detail}</p>}
      <WhenLoaded of={message} rows={4}>
        {({ body }) => <Copyable label="Posted body" text={indented(body)} />}
      </WhenLoaded>
      {one.answer !== '' && <Copyable label="Answer, its first 1,024 bytes" text={one.answer} />}
    </Dialog>
  );
}

/** Easier to read; the signature covers the body without these blanks. */
function indented(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}
