CREATE OR REPLACE VIEW span_bars AS
SELECT
    symbol,
    span,
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
    countIf(received_at >= ends[span]) AS revision
FROM
(
    SELECT
        {starts:Array(DateTime64(6, 'UTC'))} AS starts,
        {ends:Array(DateTime64(6, 'UTC'))} AS ends,
        symbol, offset, order_time, received_at, gross_spread_percent, confidence, late,
        -- roundDown searches by halving, and gives the first start for what is before it.
        indexOf(starts, fromUnixTimestamp64Micro(
            roundDown(toUnixTimestamp64Micro(order_time), arrayMap(t -> toUnixTimestamp64Micro(t), starts)), 'UTC')) AS span
    FROM pills FINAL
    WHERE symbol = {symbol:String}
      AND order_time >= arrayMin(starts) AND order_time < arrayMax(ends)
      AND timestamp >= arrayMin(starts) AND timestamp < arrayMax(ends) + INTERVAL 5 MINUTE
)
WHERE order_time < ends[span]
GROUP BY symbol, span, ends[span] AS end_of_span
COMMENT 'Bars over spans of one''s own, such as the sessions of a venue; starts in rising order.'
