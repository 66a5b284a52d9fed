CREATE OR REPLACE VIEW pills_once
(
    epoch LowCardinality(String) COMMENT 'Epoch of the pills topic that partition and offset belong to.',
    partition UInt16 COMMENT 'Partition of the pills topic.',
    offset UInt64 COMMENT 'Offset in the partition.',
    symbol String COMMENT 'Market symbol, e.g. 7203.T.',
    id String COMMENT 'Identifier chosen by the sender; (symbol, id) is the identity.',
    timestamp DateTime64(6, 'UTC') COMMENT 'When the signal was computed, by the generator.',
    received_at DateTime64(6, 'UTC') COMMENT 'When it was received.',
    order_time DateTime64(6, 'UTC') COMMENT 'min(timestamp, received_at); pills of a symbol are ordered by it, then by offset.',
    gross_spread_percent Float64 COMMENT 'Gross spread in percent.',
    market_state LowCardinality(String) COMMENT 'State label of the market as the generator saw it.',
    confidence Float64 COMMENT 'Confidence as sent, never rescaled.',
    source LowCardinality(String) COMMENT 'Which generator sent it; empty when unknown.',
    late Bool COMMENT 'Older in order time than a pill of its symbol that came before it.',
    backfill Bool COMMENT 'Received more than the backfill age after its timestamp; no track record counts it.'
)
AS SELECT
    epoch, partition, offset, symbol, id, timestamp, received_at, order_time,
    gross_spread_percent, market_state, confidence, source, late, backfill
FROM pills FINAL
COMMENT 'Every pill with effect, once: the table to ask where no view fits.'
