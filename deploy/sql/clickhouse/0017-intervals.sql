CREATE OR REPLACE VIEW intervals AS
SELECT
    symbol,
    assumeNotNull(before) AS since,
    received_at AS until,
    dateDiff('microsecond', since, until) / 1e3 AS interval_ms
FROM
(
    SELECT symbol, received_at,
           lagInFrame(toNullable(received_at), 1, NULL) OVER
               (PARTITION BY symbol ORDER BY received_at, offset ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS before
    FROM pills FINAL
    WHERE symbol = {symbol:String} AND NOT backfill
      AND received_at >= {since:DateTime64(6, 'UTC')} AND received_at < {until:DateTime64(6, 'UTC')}
      -- For the primary key: a live pill is received at most the backfill age after its timestamp
      -- (never more than 7 days, BACKFILL_AGE_MAX_MS), and at most 5 min before its timestamp.
      AND timestamp >= {since:DateTime64(6, 'UTC')} - INTERVAL 7 DAY
      AND timestamp < {until:DateTime64(6, 'UTC')} + INTERVAL 5 MINUTE
)
WHERE before IS NOT NULL
COMMENT 'Times between consecutive live pills of a symbol. Call: intervals(symbol = ''7203.T'', since = today(), until = now())'
