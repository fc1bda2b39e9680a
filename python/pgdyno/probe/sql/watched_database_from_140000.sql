-- Of all databases together, whichever is connected. Times are NULL, not 0, while track_io_timing is off. Sessions are counted
-- where the role may see all of them; begin and last reset tell whether the counters are of one piece.
SELECT sum(numbackends)::bigint AS numbackends, sum(xact_commit)::bigint AS xact_commit,
       sum(xact_rollback)::bigint AS xact_rollback, sum(blks_read)::bigint AS blks_read, sum(blks_hit)::bigint AS blks_hit,
       sum(tup_returned)::bigint AS tup_returned, sum(tup_fetched)::bigint AS tup_fetched,
       sum(tup_inserted)::bigint AS tup_inserted, sum(tup_updated)::bigint AS tup_updated,
       sum(tup_deleted)::bigint AS tup_deleted, sum(temp_files)::bigint AS temp_files, sum(temp_bytes)::bigint AS temp_bytes,
       sum(deadlocks)::bigint AS deadlocks,
       CASE WHEN current_setting('track_io_timing')::boolean THEN sum(blk_read_time) END AS blk_read_time_ms,
       CASE WHEN current_setting('track_io_timing')::boolean THEN sum(blk_write_time) END AS blk_write_time_ms,
       CASE WHEN pg_has_role('pg_read_all_stats', 'USAGE')
            THEN (SELECT count(*) FROM pg_stat_get_activity(NULL) WHERE backend_type = 'client backend') END AS client_sessions,
       (extract(epoch FROM pg_postmaster_start_time()) * 1000)::bigint AS started_unix_ms,
       (extract(epoch FROM max(stats_reset)) * 1000)::bigint AS reset_unix_ms
FROM pg_stat_database
