import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** How many attempts of a kind pass, and in how long a window. */
export interface AttemptLimit {
  readonly max: number;
  readonly windowMs: number;
}

/** Names that are remembered; beyond, the one that came first is forgotten. */
const NAMES_MAX = 50_000;

/** Counts attempts by a name, e.g. an address or an address with a user; in this process alone. */
export interface Attempts {
  /** Counts one. @returns 0 when it may go on, else the seconds to wait */
  take(name: string): number;
  /** That one was no attack after all. */
  giveBack(name: string): void;
  /** None of them was an attack after all. */
  forget(name: string): void;
  /** Names that are remembered. */
  readonly size: number;
}

/** Creates a counter with fixed windows that begin at the first attempt. */
export function createAttempts(
  { max, windowMs }: AttemptLimit,
  nowMs: () => number = () => performance.now(),
): Attempts {
  /** All windows are of one length: the one that began first ends first. */
  const windows = new Map<string, { count: number; endsMs: number }>();
  const makeRoom = (now: number) => {
    for (const [name, { endsMs }] of windows) {
      if (endsMs > now && windows.size < NAMES_MAX) return;
      windows.delete(name);
    }
  };
  return {
    take(name) {
      const now = nowMs();
      let window = windows.get(name);
      if (window === undefined || window.endsMs <= now) {
        windows.delete(name);
        makeRoom(now);
        window = { count: 0, endsMs: now + windowMs };
        windows.set(name, window);
      }
      window.count += 1;
      return window.count <= max ? 0 : Math.max(1, Math.ceil((window.endsMs - now) / 1_000));
    },
    giveBack(name) {
      const window = windows.get(name);
      if (window !== undefined) window.count -= 1;
    },
    forget: (name) => void windows.delete(name),
    get size() {
      return windows.size;
    },
  };
}

/** What one customer is given at least: whoever has one IPv6 address has 2^64 of them. */
const V6_BITS = 64;

/**
 * The network that attempts from an address are counted for: an IPv4 address itself, of IPv6 the
 * /64. An IPv4-mapped address is the IPv4 one; what is no address stays as it is.
 */
export function networkOf(address: string): string {
  const [text] = address.split('%', 1) as [string];
  if (isIP(text) === 0) return address.slice(0, 64);
  const parsed = ipaddr.process(text);
  if (parsed.kind() === 'ipv4') return parsed.toString();
  const network = ipaddr.IPv6.networkAddressFromCIDR(`${parsed.toString()}/${V6_BITS}`);
  return `${network.toString()}/${V6_BITS}`;
}
