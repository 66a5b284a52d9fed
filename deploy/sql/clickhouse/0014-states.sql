CREATE OR REPLACE VIEW states AS
WITH
    {since:DateTime64(6, 'UTC')} AS begins,
    {until:DateTime64(6, 'UTC')} AS ends,
    toIntervalMicrosecond({max_hold_us:UInt64}) AS hold,
    seen AS
    (
        SELECT market_state, order_time, offset,
               leadInFrame(order_time, 1, ends) OVER
                   (ORDER BY order_time, offset ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS next
        FROM pills FINAL
        WHERE symbol = {symbol:String}
          AND order_time >= begins - hold AND order_time < ends
          AND timestamp >= begins - hold AND timestamp < ends + INTERVAL 5 MINUTE
    ),
    -- A state holds until the next pill, at most `max_hold_us`.
    held AS
    (
        SELECT market_state, order_time, offset,
               greatest(order_time, begins) AS since,
               least(next, order_time + hold, ends) AS until
        FROM seen
        WHERE until > since
    ),
    spelled AS
    (
        SELECT *,
               lagInFrame(market_state, 1, '') OVER by_time AS state_before,
               lagInFrame(until, 1, begins) OVER by_time AS until_before
        FROM held
        WINDOW by_time AS (ORDER BY order_time, offset ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
    )
SELECT
    market_state,
    sum(dateDiff('microsecond', since, until)) / 1e6 AS seconds,
    countIf(market_state != state_before OR since > until_before) AS spells,
    any(counted.pills) AS pills
FROM spelled
LEFT JOIN
(
    SELECT market_state, countIf(order_time >= begins) AS pills FROM seen GROUP BY market_state
) AS counted USING (market_state)
GROUP BY market_state
UNION ALL
SELECT
    'unobserved',
    (dateDiff('microsecond', begins, ends) - sum(dateDiff('microsecond', since, until))) / 1e6 AS seconds,
    countIf(since > until_before) + (greatest(max(until), begins) < ends) AS spells,
    0
FROM spelled
HAVING seconds > 0
COMMENT 'How long a symbol was in each market state. Call: states(symbol = ''7203.T'', max_hold_us = 60000000, since = today(), until = now())'
