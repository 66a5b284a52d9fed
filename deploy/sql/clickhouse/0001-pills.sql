CREATE TABLE IF NOT EXISTS pills
(
    epoch LowCardinality(String) COMMENT 'Epoch of the pills topic that partition and offset belong to.',
    partition UInt16 COMMENT 'Partition of the pills topic.',
    offset UInt64 COMMENT 'Offset in the partition; of several rows with the same identity, the lowest wins.',
    symbol String COMMENT 'Market symbol, e.g. 7203.T.',
    id String COMMENT 'Identifier chosen by the sender; (symbol, id) is the identity.',
    timestamp DateTime64(6, 'UTC') COMMENT 'When the generator computed the signal.',
    received_at DateTime64(6, 'UTC') COMMENT 'When the pill was received: the gateway''s time, or the append time if they differ by more than 5 s.',
    order_time DateTime64(6, 'UTC') COMMENT 'min(timestamp, received_at); pills of a symbol are ordered by order_time, then by offset.',
    gross_spread_percent Float64 COMMENT 'Gross spread in percent.',
    market_state LowCardinality(String) COMMENT 'Market state label from the generator.',
    confidence Float64 COMMENT 'Confidence as sent, never rescaled.',
    source LowCardinality(String) COMMENT 'The generator that sent the pill; empty if unknown.',
    late Bool COMMENT 'An earlier pill of the symbol in the log has a later order_time.',
    backfill Bool COMMENT 'Received more than the backfill age after its timestamp; track records exclude it.',
    rank UInt64 MATERIALIZED bitNot(offset) COMMENT 'Decreases as the offset increases, so that merges keep the lowest offset.'
)
ENGINE = ReplacingMergeTree(rank)
ORDER BY (symbol, timestamp, id)
COMMENT 'Every pill with effect, once. Read with FINAL, since merges remove repeats later.'
