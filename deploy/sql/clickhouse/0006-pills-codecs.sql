ALTER TABLE pills
    MODIFY COLUMN offset CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN prev CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN rank CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN timestamp CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN received_at CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN order_time CODEC(Delta(8), ZSTD(1)),
    MODIFY COLUMN id CODEC(ZSTD(1)),
    MODIFY COLUMN gross_spread_percent CODEC(ZSTD(1)),
    MODIFY COLUMN confidence CODEC(ZSTD(1))
