import { openContext } from '../../lib/kafka/log-context.ts';
import { runProcess } from '../../lib/run/run-process.ts';
import { nowMicros } from '../../lib/timing/clock.ts';
import { readStreamConfig } from './config.ts';
import { endWithSupervisor } from './follow-supervisor.ts';
import { openStream } from './stream.ts';

endWithSupervisor();
await runProcess('stream', readStreamConfig, async (config, life) => {
  const context = await openContext('stream', config, life);
  await openStream({ ...context, nowMicros });
});
