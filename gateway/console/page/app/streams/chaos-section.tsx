/** The feed that misbehaves on purpose. */
export function ChaosSection() {
  return (
    <section class="part">
      <h2>A feed to test clients with</h2>
      <p>
        Subscribe to <code>TEST:CHAOS</code>: it sends gaps, repeats, late pills and closes on a
        schedule, so that a client meets them before a trading day does. Nothing of this feed is
        stored or sent to anyone else.
      </p>
      <p>
        <a href="/app/streams/frames">Open the frame inspector</a>
      </p>
    </section>
  );
}
