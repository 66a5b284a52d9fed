CREATE TABLE IF NOT EXISTS webhook_attempts
(
    account_id LowCardinality(String) COMMENT 'Account that owns the endpoint.',
    endpoint_id String COMMENT 'The endpoint: whe_ and 12 characters.',
    at DateTime64(6, 'UTC') COMMENT 'When the attempt began.',
    message_id String COMMENT 'webhook-id: the same at every attempt.',
    event_type LowCardinality(String) COMMENT 'Event type, as in the body.',
    pills UInt16 COMMENT 'Number of pills in the message; 0 = another event.',
    attempt UInt16 COMMENT 'Number of the attempt, from 1.',
    outcome LowCardinality(String) COMMENT 'delivered, retry, failed or expired.',
    status UInt16 COMMENT 'HTTP status; 0 = no response.',
    reason LowCardinality(String) COMMENT 'Why the attempt failed, as one word; empty = it did not.',
    detail String COMMENT 'Why the attempt failed, as a sentence.' CODEC(ZSTD(3)),
    latency_us UInt32 COMMENT 'From the start of the attempt to the end of the response.',
    since_received_us UInt64 COMMENT 'From the receive time of the oldest pill to the start of the attempt; 0 for other events.',
    answer String COMMENT 'The first 1,024 bytes of the response.' CODEC(ZSTD(3)),
    body String COMMENT 'Request body of the first attempt; empty for later ones.' CODEC(ZSTD(3))
)
ENGINE = MergeTree
PARTITION BY toDate(at)
ORDER BY (endpoint_id, at)
TTL toDateTime(at) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1
COMMENT 'Every attempt to deliver a webhook, for 30 days. Written about once a second; while ClickHouse is down, the oldest attempts are lost, but no delivery is.'
