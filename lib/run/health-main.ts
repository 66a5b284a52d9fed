/** The health check of the image: exits 0 if the process beside it answers /health within 2 s. */
const { METRICS_HOST = '127.0.0.1', METRICS_PORT = '0' } = process.env;
const isAny = METRICS_HOST === '0.0.0.0' || METRICS_HOST === '::';
const named = METRICS_HOST.includes(':') ? `[${METRICS_HOST}]` : METRICS_HOST;
const host = isAny ? '127.0.0.1' : named;
try {
  const answer = await fetch(`http://${host}:${METRICS_PORT}/health`, {
    signal: AbortSignal.timeout(2_000),
  });
  if (!answer.ok) throw new Error(`/health answered ${answer.status}`);
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 1;
}
