CREATE OR REPLACE VIEW movers AS
-- Order time and offset as one number, since argMin of a tuple takes twice as long.
WITH
    bitShiftLeft(toInt128(toUnixTimestamp64Micro(order_time)), 64) + toInt128(offset) AS log_order
SELECT
    symbol,
    argMax(gross_spread_percent, log_order) AS now,
    argMin(gross_spread_percent, log_order) AS then,
    now - then AS change,
    stddevSampStable(gross_spread_percent) AS deviation,
    if(count < 2 OR deviation = 0, NULL, (now - avg(gross_spread_percent)) / deviation) AS z,
    count() AS count
FROM pills FINAL
WHERE order_time >= {since:DateTime64(6, 'UTC')} AND order_time < {until:DateTime64(6, 'UTC')}
  AND timestamp >= {since:DateTime64(6, 'UTC')}
  AND timestamp < {until:DateTime64(6, 'UTC')} + INTERVAL 5 MINUTE
  AND NOT startsWith(symbol, 'TEST:')
GROUP BY symbol
HAVING count >= {min_count:UInt64}
COMMENT 'Changes of the spread from the first to the last pill of a time range, by symbol. Call: movers(min_count = 2, since = today(), until = now())'
