CREATE OR REPLACE VIEW summary AS
SELECT
    symbol,
    count() AS count,
    avg(gross_spread_percent) AS spread_mean,
    if(count() < 2, NULL, stddevSampStable(gross_spread_percent)) AS spread_stddev,
    min(gross_spread_percent) AS spread_min,
    max(gross_spread_percent) AS spread_max,
    quantileExactInclusive(0.05)(gross_spread_percent) AS spread_p05,
    quantileExactInclusive(0.5)(gross_spread_percent) AS spread_p50,
    quantileExactInclusive(0.95)(gross_spread_percent) AS spread_p95,
    avg(confidence) AS confidence_mean,
    quantileExactInclusive(0.5)(confidence) AS confidence_p50,
    argMax((partition, offset, timestamp, gross_spread_percent), (order_time, offset)) AS last
FROM pills FINAL
WHERE symbol = {symbol:String}
  AND order_time >= {since:DateTime64(6, 'UTC')} AND order_time < {until:DateTime64(6, 'UTC')}
  AND timestamp >= {since:DateTime64(6, 'UTC')}
  AND timestamp < {until:DateTime64(6, 'UTC')} + INTERVAL 5 MINUTE
GROUP BY symbol
COMMENT 'What the spread and the confidence of a symbol were over a time.'
