-- 18 moved writes, syncs and their times to pg_stat_io, object = 'wal'.
SELECT wal_records, wal_fpi, wal_bytes::bigint, wal_buffers_full
FROM pg_stat_wal
