CREATE TABLE IF NOT EXISTS pills
(
    epoch LowCardinality(String) COMMENT 'Epoch of the pills topic that partition and offset belong to.',
    partition UInt16 COMMENT 'Partition of the pills topic.',
    offset UInt64 COMMENT 'Offset in the partition; of several rows with one identity the lowest wins.',
    symbol String COMMENT 'Market symbol, e.g. 7203.T.',
    id String COMMENT 'Identifier chosen by the sender; (symbol, id) is the identity.',
    timestamp DateTime64(6, 'UTC') COMMENT 'When the signal was computed, by the generator.',
    received_at DateTime64(6, 'UTC') COMMENT 'When it was received: the gateway''s time, or the append time where that is more than 5 s off.',
    order_time DateTime64(6, 'UTC') COMMENT 'min(timestamp, received_at); pills of a symbol are ordered by it, then by offset.',
    gross_spread_percent Float64 COMMENT 'Gross spread in percent.',
    market_state LowCardinality(String) COMMENT 'State label of the market as the generator saw it.',
    confidence Float64 COMMENT 'Confidence as sent, never rescaled.',
    source LowCardinality(String) COMMENT 'Which generator sent it; empty when unknown.',
    late Bool COMMENT 'Older in order time than a pill of its symbol that came before it.',
    backfill Bool COMMENT 'Received more than the backfill age after its timestamp; no track record counts it.',
    rank UInt64 MATERIALIZED bitNot(offset) COMMENT 'Falls as the offset rises, so that the merge keeps the lowest offset.'
)
ENGINE = ReplacingMergeTree(rank)
ORDER BY (symbol, timestamp, id)
COMMENT 'Every pill with effect, once. Read with FINAL: merges remove repeats later.'
