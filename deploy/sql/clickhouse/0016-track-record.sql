CREATE OR REPLACE VIEW track_record AS
WITH
    toIntervalMicrosecond({horizon_us:UInt64}) AS horizon,
    seen AS
    (
        SELECT symbol, order_time, offset, gross_spread_percent, confidence, backfill
        FROM pills FINAL
        WHERE ({symbol:String} = '*' OR symbol = {symbol:String}) AND NOT (startsWith(symbol, 'TEST:') AND {symbol:String} = '*')
          AND order_time >= {since:DateTime64(6, 'UTC')}
          AND order_time <= {until:DateTime64(6, 'UTC')} + horizon
          AND timestamp >= {since:DateTime64(6, 'UTC')}
          AND timestamp <= {until:DateTime64(6, 'UTC')} + horizon + INTERVAL 5 MINUTE
    ),
    judged AS
    (
        SELECT *, order_time + horizon AS horizon_at
        FROM seen
        WHERE order_time < {until:DateTime64(6, 'UTC')}
    ),
    -- If several pills have the same order time, the last in the log gives the spread.
    after AS
    (
        SELECT symbol, order_time, argMax(gross_spread_percent, offset) AS spread
        FROM seen
        WHERE NOT backfill
        GROUP BY symbol, order_time
    )
SELECT
    judged.symbol AS symbol,
    judged.order_time AS order_time,
    judged.offset AS offset,
    judged.confidence AS confidence,
    judged.gross_spread_percent AS spread,
    multiIf(
        judged.backfill, 'excluded_backfill',
        judged.horizon_at > {as_of:DateTime64(6, 'UTC')}, 'unsettled',
        after.order_time <= judged.order_time
            OR after.order_time < judged.horizon_at - toIntervalMicrosecond({age_max_us:UInt64}), 'not_observable',
        'settled') AS outcome,
    if(outcome = 'settled', toNullable(after.spread), NULL) AS spread_after,
    outcome = 'settled' AND abs(after.spread) < abs(judged.gross_spread_percent) AS narrowed
FROM judged
ASOF LEFT JOIN after ON judged.symbol = after.symbol AND judged.horizon_at >= after.order_time
COMMENT 'Outcome of each pill: the last spread within the horizon after it. Call: track_record(symbol = ''7203.T'', horizon_us = 60000000, age_max_us = 60000000, as_of = now(), since = today(), until = now())'
