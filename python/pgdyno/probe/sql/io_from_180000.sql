-- From 18 an operation may be many blocks: counts of operations do not compare with those before, bytes do.
SELECT backend_type, object, context,
       reads, read_bytes::bigint, CASE WHEN timed THEN read_time END AS read_time_ms,
       writes, write_bytes::bigint, CASE WHEN timed THEN write_time END AS write_time_ms,
       extends, extend_bytes::bigint,
       writebacks, hits, evictions, reuses, fsyncs, CASE WHEN timed THEN fsync_time END AS fsync_time_ms
FROM pg_stat_io,
     LATERAL (SELECT current_setting(CASE object WHEN 'wal' THEN 'track_wal_io_timing' ELSE 'track_io_timing' END)::boolean)
         AS timing (timed)
WHERE coalesce(reads, 0) + coalesce(writes, 0) + coalesce(extends, 0) + coalesce(hits, 0) + coalesce(fsyncs, 0) > 0
