/** What the pages use of an AsyncAPI document. */
export interface AsyncApi {
  readonly operations: Readonly<
    Record<
      string,
      {
        /** Of the server: it receives what clients send. */
        readonly action: 'send' | 'receive';
        readonly summary?: string;
        readonly messages?: readonly { readonly $ref: string }[];
      }
    >
  >;
  readonly components: {
    readonly messages: Readonly<
      Record<
        string,
        {
          readonly summary?: string;
          readonly examples?: readonly { readonly payload: unknown }[];
        }
      >
    >;
  };
}

export interface Frame {
  readonly name: string;
  readonly isFromClient: boolean;
  readonly summary: string;
  readonly examples: readonly string[];
}

/** All frames of the stream: those that clients send, then those that they receive. */
export function framesOf({ operations, components }: AsyncApi): readonly Frame[] {
  const fromClient = new Set(
    Object.values(operations)
      .filter(({ action }) => action === 'receive')
      .flatMap(({ messages = [] }) => messages.map(({ $ref }) => $ref.split('/').at(-1)!)),
  );
  return Object.entries(components.messages)
    .map(([name, { summary = '', examples = [] }]) => ({
      ...{ name, summary, isFromClient: fromClient.has(name) },
      examples: examples.map(({ payload }) => JSON.stringify(payload, undefined, 2)),
    }))
    .sort((a, b) => Number(b.isFromClient) - Number(a.isFromClient));
}
