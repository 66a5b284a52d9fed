/** A socket that waits to be authenticated. */
export interface Waiting {
  /** The network that the socket is counted for. */
  readonly network: string;
  /** Ends the socket, so that another may wait. */
  giveWay(): void;
}

/**
 * Creates a room for `max` sockets, `perNetworkMax` of one network. If it is full, the oldest socket
 * of the network that has the most gives way to a socket of a network that has fewer, so a few
 * networks never shut out the others.
 */
export function createWaitingRoom(max: number, perNetworkMax: number) {
  /** Each network's sockets, the oldest first. */
  const byNetwork = new Map<string, Set<Waiting>>();
  let count = 0;

  const leave = (one: Waiting) => {
    const own = byNetwork.get(one.network);
    if (own?.delete(one) !== true) return;
    count -= 1;
    if (own.size === 0) byNetwork.delete(one.network);
  };
  const makeRoomFor = (newcomers: number): boolean => {
    let most: ReadonlySet<Waiting> = new Set();
    for (const own of byNetwork.values()) if (own.size > most.size) most = own;
    // Its network keeps at least as many as the network of the newcomer has then.
    if (most.size <= newcomers) return false;
    const [oldest] = most as Set<Waiting>;
    leave(oldest!);
    oldest!.giveWay();
    return true;
  };
  return {
    /** @returns why there is no room for the socket */
    enter(one: Waiting): 'full' | 'full_of_network' | undefined {
      const size = byNetwork.get(one.network)?.size ?? 0;
      if (size >= perNetworkMax) return 'full_of_network';
      if (count >= max && !makeRoomFor(size + 1)) return 'full';
      // Looked up again: the set is removed when its last socket gives way.
      const own = byNetwork.get(one.network) ?? new Set();
      byNetwork.set(one.network, own.add(one));
      count += 1;
      return undefined;
    },
    /** Does nothing for a socket that is not in the room. */
    leave,
  };
}
