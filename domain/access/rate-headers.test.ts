import { expect, test } from 'vitest';
import { rateHeaders } from './rate-headers.ts';

const burst = { limit: 20, remaining: 19, windowS: 2, resetS: 1 };
const daily = { limit: 1_000, remaining: 12, windowS: 86_400, resetS: 3_600 };

test.each([
  {
    name: 'the daily policy comes first',
    limits: { burst, daily },
    policy: '"daily";q=1000;w=86400, "burst";q=20;w=2',
    left: '"daily";r=12;t=3600, "burst";r=19;t=1',
  },
  {
    name: 'without a daily limit there is only the burst policy',
    limits: { burst, daily: undefined },
    policy: '"burst";q=20;w=2',
    left: '"burst";r=19;t=1',
  },
  {
    name: 'an exhausted limit has r=0',
    limits: { burst: { ...burst, remaining: 0, resetS: 2 }, daily: { ...daily, remaining: 0 } },
    policy: '"daily";q=1000;w=86400, "burst";q=20;w=2',
    left: '"daily";r=0;t=3600, "burst";r=0;t=2',
  },
])('$name', ({ limits, policy, left }) => {
  expect(rateHeaders(limits)).toEqual({ 'ratelimit-policy': policy, ratelimit: left });
});
