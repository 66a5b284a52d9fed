import { openLatestTable } from '../../domain/order/latest-table.ts';
import { openContext } from '../../lib/kafka/log-context.ts';
import { STEADY } from '../../lib/kafka/pace.ts';
import { formatCursor, formatPosition } from '../../schemas/position.ts';
import { formatTimestamp } from '../../schemas/timestamp.ts';
import { runReference } from '../http-load/reference-server.ts';

// The reference of the access benchmark: the latest pill of a symbol from memory, with the bounds
// of the API's HTTP server and as many bytes in the response, but without key, quota and limits.

await runReference('bare', 'api', async (app, config, life) => {
  const { client, schemas, settings } = await openContext('bare', config, life);
  const { epoch } = settings;
  const latest = await openLatestTable({
    client,
    schemas,
    epoch,
    namespace: config.namespace,
    log: life.log,
    onFatal: life.fail,
    pace: STEADY,
  });
  life.onStop('latest table', latest.close);
  app.get<{ Querystring: { symbol: string } }>('/api/pills/latest', ({ query }, reply) => {
    const row = latest.get(query.symbol);
    if (row === undefined) return reply.code(404).send({ code: 'no_pill' });
    const { partition, pill } = row;
    const cursor = formatCursor(partition, pill.offset);
    const { id, symbol, gross_spread_percent, market_state, confidence } = pill;
    const data = {
      cursor,
      prev: pill.prev_offset === null ? null : formatCursor(partition, pill.prev_offset),
      id,
      timestamp: formatTimestamp(pill.timestamp),
      symbol,
      gross_spread_percent,
      market_state,
      confidence,
      received_at: formatTimestamp(pill.received_at),
    };
    const position = formatPosition(epoch, latest.processed());
    return reply
      .headers({ 'api-version': '1', etag: `"${epoch}-${cursor}"` })
      .header('cache-control', 'private, no-cache')
      .type('application/json; charset=utf-8')
      .send(JSON.stringify({ data, position }));
  });
});
