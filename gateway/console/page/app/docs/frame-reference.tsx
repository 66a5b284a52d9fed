import { Copyable } from '../parts/copy.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { type AsyncApi, type Frame, framesOf } from './frames.ts';
import { Marked } from './marked.tsx';

/** Each frame of the stream with its examples. */
export function FrameReference() {
  const document = useLoad<AsyncApi>('/asyncapi.json');
  return (
    <>
      <p>
        The <a href="/app/streams/frames">frame inspector</a> sends and shows these frames on a
        socket of your account.
      </p>
      <WhenLoaded of={document} rows={12}>
        {(data) => {
          const frames = framesOf(data);
          return (
            <>
              <Frames title="Sent by clients" of={frames.filter((one) => one.isFromClient)} />
              <Frames title="Received by clients" of={frames.filter((one) => !one.isFromClient)} />
            </>
          );
        }}
      </WhenLoaded>
    </>
  );
}

function Frames({ title, of: frames }: { readonly title: string; readonly of: readonly Frame[] }) {
  return (
    <section class="part">
      <h2>{title}</h2>
      {frames.map(({ name, summary, examples }) => (
        <details key={name}>
          <summary>
            <code>{name}</code> <Marked text={summary} />
          </summary>
          {examples.map((text, index) => (
            <Copyable
              key={index}
              label={examples.length === 1 ? name : `${name}, ${index + 1}`}
              text={text}
            />
          ))}
        </details>
      ))}
    </section>
  );
}
