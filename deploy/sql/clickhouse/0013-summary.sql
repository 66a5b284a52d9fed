CREATE OR REPLACE VIEW summary AS
-- Order time and offset as one number, since argMin of a tuple takes twice as long.
WITH
    bitShiftLeft(toInt128(toUnixTimestamp64Micro(order_time)), 64) + toInt128(offset) AS log_order
SELECT
    symbol,
    count() AS count,
    avg(gross_spread_percent) AS spread_mean,
    if(count() < 2, NULL, stddevSampStable(gross_spread_percent)) AS spread_stddev,
    min(gross_spread_percent) AS spread_min,
    max(gross_spread_percent) AS spread_max,
    quantilesExactInclusive(0.05, 0.5, 0.95)(gross_spread_percent)[1] AS spread_p05,
    quantilesExactInclusive(0.05, 0.5, 0.95)(gross_spread_percent)[2] AS spread_p50,
    quantilesExactInclusive(0.05, 0.5, 0.95)(gross_spread_percent)[3] AS spread_p95,
    avg(confidence) AS confidence_mean,
    quantileExactInclusive(0.5)(confidence) AS confidence_p50,
    argMax((partition, offset, timestamp, gross_spread_percent), log_order) AS last
FROM pills FINAL
WHERE symbol = {symbol:String}
  AND order_time >= {since:DateTime64(6, 'UTC')} AND order_time < {until:DateTime64(6, 'UTC')}
  AND timestamp >= {since:DateTime64(6, 'UTC')}
  AND timestamp < {until:DateTime64(6, 'UTC')} + INTERVAL 5 MINUTE
GROUP BY symbol
COMMENT 'Statistics of the spread and the confidence of a symbol over a time range. Call: summary(symbol = ''7203.T'', since = today(), until = now())'
