import type { Allowance } from './account-access.ts';

/**
 * Formats limits as in draft-ietf-httpapi-ratelimit-headers-11: policies with quota `q` and window
 * `w` in seconds, and the remainder `r` of each, reset after `t` seconds. The daily policy comes
 * first; an account without a daily limit has none.
 */
export function rateHeaders(limits: {
  readonly burst: Allowance;
  readonly daily: Allowance | undefined;
}): { readonly 'ratelimit-policy': string; readonly ratelimit: string } {
  const { burst, daily } = limits;
  const policy = `"burst";q=${burst.limit};w=${burst.windowS}`;
  const left = `"burst";r=${burst.remaining};t=${burst.resetS}`;
  if (daily === undefined) return { 'ratelimit-policy': policy, ratelimit: left };
  return {
    'ratelimit-policy': `"daily";q=${daily.limit};w=${daily.windowS}, ${policy}`,
    ratelimit: `"daily";r=${daily.remaining};t=${daily.resetS}, ${left}`,
  };
}
