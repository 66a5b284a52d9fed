/** The three things that lists of webhooks show, told apart. */
export function Terms() {
  return (
    <dl class="terms hint">
      <dt>Event</dt>
      <dd>
        What happened, such as a published pill. It is sent to every endpoint that asks for it.
      </dd>
      <dt>Delivery</dt>
      <dd>
        One message to one endpoint, with one or more events and a <code>webhook-id</code> that it
        keeps. It waits, is delivered, or is given up.
      </dd>
      <dt>Attempt</dt>
      <dd>One request of a delivery, and its answer. A delivery has up to ten.</dd>
    </dl>
  );
}
