import type { UrlPolicy } from '../url-policy.ts';

/** A policy of tests, by default strict and without addresses of our own. */
export function policyOf(of: Partial<UrlPolicy> = {}): UrlPolicy {
  const own = { ports: new Set<number>(), hosts: new Set<string>(), isPublic: false };
  return { allowLoopback: false, ports: [443, 8443], own, ...of };
}
