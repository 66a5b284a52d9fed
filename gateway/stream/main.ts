import { readPepper } from '../../lib/access/pepper.ts';
import { checkOverridesFile } from '../../lib/calendar/overrides-file.ts';
import { nowMicros } from '../../lib/clock.ts';
import { openContext } from '../../lib/context.ts';
import { runProcess } from '../../lib/run.ts';
import { readStreamConfig } from './config.ts';
import { endWithSupervisor } from './dedicated.ts';
import { openStream } from './stream.ts';

endWithSupervisor();
await runProcess(
  'stream',
  () => {
    const config = readStreamConfig(process.env);
    checkOverridesFile(config.calendarOverrides);
    return { ...config, pepper: readPepper(config.pepperPath) };
  },
  async (config, life) => {
    const context = await openContext('stream', config, life);
    await openStream({ ...context, nowMicros });
  },
);
