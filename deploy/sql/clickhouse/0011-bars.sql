CREATE OR REPLACE VIEW bars AS
-- Order time and offset as one number, since argMin of a tuple takes twice as long.
WITH
    bitShiftLeft(toInt128(toUnixTimestamp64Micro(order_time)), 64) + toInt128(offset) AS log_order
SELECT
    symbol,
    toStartOfInterval(order_time, toIntervalSecond({step_s:UInt32}), 'UTC') AS start,
    argMin(gross_spread_percent, log_order) AS open,
    max(gross_spread_percent) AS high,
    min(gross_spread_percent) AS low,
    argMax(gross_spread_percent, log_order) AS close,
    count() AS count,
    avg(gross_spread_percent) AS mean,
    quantilesExactInclusive(0.05, 0.5, 0.95)(gross_spread_percent)[1] AS p05,
    quantilesExactInclusive(0.05, 0.5, 0.95)(gross_spread_percent)[2] AS p50,
    quantilesExactInclusive(0.05, 0.5, 0.95)(gross_spread_percent)[3] AS p95,
    avg(confidence) AS mean_confidence,
    countIf(late) AS late_count,
    countIf(received_at >= toStartOfInterval(order_time, toIntervalSecond({step_s:UInt32}), 'UTC')
        + toIntervalSecond({step_s:UInt32})) AS revision
FROM pills FINAL
WHERE symbol IN {symbols:Array(String)}
  AND order_time >= {since:DateTime64(6, 'UTC')} AND order_time < {until:DateTime64(6, 'UTC')}
  -- For the primary key: a timestamp is at most 5 min ahead of the order time.
  AND timestamp >= {since:DateTime64(6, 'UTC')}
  AND timestamp < {until:DateTime64(6, 'UTC')} + INTERVAL 5 MINUTE
GROUP BY symbol, start
COMMENT 'Bars of the spread, by symbol and step. Call: bars(symbols = [''7203.T''], step_s = 60, since = today(), until = now())'
