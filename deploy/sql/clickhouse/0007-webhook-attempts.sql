CREATE TABLE IF NOT EXISTS webhook_attempts
(
    account_id LowCardinality(String) COMMENT 'Whose endpoint.',
    endpoint_id String COMMENT 'The endpoint: whe_ and 12 characters.',
    at DateTime64(6, 'UTC') COMMENT 'When the attempt began.',
    message_id String COMMENT 'webhook-id: the same at every attempt.',
    event_type LowCardinality(String) COMMENT 'As in the body.',
    pills UInt16 COMMENT 'How many pills it carried; 0 = another event.',
    attempt UInt16 COMMENT 'Which attempt at the message, from 1.',
    outcome LowCardinality(String) COMMENT 'delivered, retry, failed or expired.',
    status UInt16 COMMENT 'HTTP status; 0 = none came.',
    reason LowCardinality(String) COMMENT 'What was wrong, one word; empty = nothing.',
    detail String COMMENT 'What was wrong, for people.' CODEC(ZSTD(3)),
    latency_us UInt32 COMMENT 'From the begin of the attempt to the end of the answer.',
    since_received_us UInt64 COMMENT 'From the receive time of its oldest pill to the begin; 0 for other events.',
    answer String COMMENT 'The first 1,024 bytes of the answer.' CODEC(ZSTD(3)),
    body String COMMENT 'What was posted, at the first attempt; empty at others.' CODEC(ZSTD(3))
)
ENGINE = MergeTree
PARTITION BY toDate(at)
ORDER BY (endpoint_id, at)
TTL toDateTime(at) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1
COMMENT 'Every attempt to deliver a webhook, for 30 days. Written about once a second; while ClickHouse is away the oldest are lost, the deliveries are not.'
