import type { ExportFormat } from '../rest/export.ts';
import { type ConnectionOptions, connect } from './connect.ts';
import type { ExitName } from './exit-codes.ts';
import { type Terminal, writeLine } from './terminal.ts';

export interface ExportCommandOptions extends ConnectionOptions {
  readonly from: string;
  readonly to: string;
  readonly format: ExportFormat;
  readonly output: string;
}

/** `pillole export [symbols…] --from time --to time --output file`: the pills as a file. */
export async function runExportCommand(
  terminal: Terminal,
  symbols: readonly string[],
  { from, to, format, output: path, ...options }: ExportCommandOptions,
): Promise<ExitName> {
  const { stdout, stderr, signal } = terminal;
  const info = await connect(terminal, options).export({
    ...{ from, to, format, path, signal },
    ...(symbols.length > 0 && { symbols }),
    onProgress: ({ state, progress }) =>
      writeLine(stderr, `${state}: ${progress.percent} %, ${progress.rows} pills`),
  });
  const { bytes, sha256, receipt } = info.file!;
  const text = `${path}: ${receipt.count} pills, ${bytes} bytes, SHA-256 ${sha256}, as of ${info.position}`;
  await writeLine(stdout, options.json === true ? JSON.stringify({ path, ...info }) : text);
  return 'ok';
}
