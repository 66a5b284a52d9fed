CREATE OR REPLACE VIEW bars AS
SELECT
    symbol,
    toStartOfInterval(order_time, toIntervalSecond({step_s:UInt32}), 'UTC') AS start,
    argMin(gross_spread_percent, (order_time, offset)) AS open,
    max(gross_spread_percent) AS high,
    min(gross_spread_percent) AS low,
    argMax(gross_spread_percent, (order_time, offset)) AS close,
    count() AS count,
    avg(gross_spread_percent) AS mean,
    quantileExactInclusive(0.05)(gross_spread_percent) AS p05,
    quantileExactInclusive(0.5)(gross_spread_percent) AS p50,
    quantileExactInclusive(0.95)(gross_spread_percent) AS p95,
    avg(confidence) AS mean_confidence,
    countIf(late) AS late_count,
    countIf(received_at >= toStartOfInterval(order_time, toIntervalSecond({step_s:UInt32}), 'UTC')
        + toIntervalSecond({step_s:UInt32})) AS revision
FROM pills FINAL
WHERE symbol IN {symbols:Array(String)}
  AND order_time >= {since:DateTime64(6, 'UTC')} AND order_time < {until:DateTime64(6, 'UTC')}
  -- What the primary key can use: a timestamp is at most 5 min ahead of the order time.
  AND timestamp >= {since:DateTime64(6, 'UTC')}
  AND timestamp < {until:DateTime64(6, 'UTC')} + INTERVAL 5 MINUTE
GROUP BY symbol, start
COMMENT 'Bars of the spread, by symbol and step.'
