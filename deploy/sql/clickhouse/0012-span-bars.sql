CREATE OR REPLACE VIEW span_bars AS
-- Order time and offset as one number, since argMin of a tuple takes twice as long.
WITH
    bitShiftLeft(toInt128(toUnixTimestamp64Micro(order_time)), 64) + toInt128(offset) AS log_order
SELECT
    symbol,
    span,
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
    countIf(received_at >= ends[span]) AS revision
FROM
(
    SELECT
        {starts:Array(DateTime64(6, 'UTC'))} AS starts,
        {ends:Array(DateTime64(6, 'UTC'))} AS ends,
        symbol, offset, order_time, received_at, gross_spread_percent, confidence, late,
        -- roundDown is a binary search; a time before the first start gets the first start.
        indexOf(starts, fromUnixTimestamp64Micro(
            roundDown(toUnixTimestamp64Micro(order_time), arrayMap(t -> toUnixTimestamp64Micro(t), starts)), 'UTC')) AS span
    FROM pills FINAL
    WHERE symbol = {symbol:String}
      AND order_time >= arrayMin(starts) AND order_time < arrayMax(ends)
      AND timestamp >= arrayMin(starts) AND timestamp < arrayMax(ends) + INTERVAL 5 MINUTE
)
WHERE order_time < ends[span]
GROUP BY symbol, span, ends[span] AS end_of_span
COMMENT 'Bars over given spans, such as the sessions of a venue; starts must be in ascending order. Call: span_bars(symbol = ''7203.T'', starts = [''2026-11-20 00:00:00''], ends = [''2026-11-20 06:30:00''])'
