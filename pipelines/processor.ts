import type { Context } from '../lib/context.ts';
import type { PipelineConfig } from './config.ts';

/** What every processor is given. */
export type ProcessorContext = Context<PipelineConfig>;
