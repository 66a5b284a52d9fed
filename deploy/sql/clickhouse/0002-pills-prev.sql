ALTER TABLE pills
    ADD COLUMN IF NOT EXISTS prev Nullable(UInt64)
    COMMENT 'Offset of the symbol''s previous live pill, as in streams; null for the first pill, for backfill, and in rows older than this column.'
    AFTER confidence
