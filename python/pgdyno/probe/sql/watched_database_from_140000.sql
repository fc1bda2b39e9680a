-- Of all databases together, whichever is connected. Times are NULL, not 0, while track_io_timing is off. Sessions are counted
-- where the role may see all of them: with them the statements that have run for as long as log_min_duration_statement says (a
-- second where it is off, or logs all) and have not ended. Begin and last reset tell whether the counters are of one piece.
SELECT counted.*,
       CASE WHEN sees_all THEN sessions.client_sessions END AS client_sessions,
       CASE WHEN sees_all THEN sessions.long_statements END AS long_statements,
       CASE WHEN sees_all THEN sessions.longest_statement_ms END AS longest_statement_ms,
       CASE WHEN sees_all THEN sessions.idle_in_transaction END AS idle_in_transaction,
       CASE WHEN sees_all THEN sessions.longest_idle_in_transaction_ms END AS longest_idle_in_transaction_ms,
       (extract(epoch FROM pg_postmaster_start_time()) * 1000)::bigint AS started_unix_ms
FROM (SELECT sum(numbackends)::bigint AS numbackends, sum(xact_commit)::bigint AS xact_commit,
             sum(xact_rollback)::bigint AS xact_rollback, sum(blks_read)::bigint AS blks_read, sum(blks_hit)::bigint AS blks_hit,
             sum(tup_returned)::bigint AS tup_returned, sum(tup_fetched)::bigint AS tup_fetched,
             sum(tup_inserted)::bigint AS tup_inserted, sum(tup_updated)::bigint AS tup_updated,
             sum(tup_deleted)::bigint AS tup_deleted, sum(temp_files)::bigint AS temp_files, sum(temp_bytes)::bigint AS temp_bytes,
             sum(deadlocks)::bigint AS deadlocks, sum(conflicts)::bigint AS conflicts,
             CASE WHEN current_setting('track_io_timing')::boolean THEN sum(blk_read_time) END AS blk_read_time_ms,
             CASE WHEN current_setting('track_io_timing')::boolean THEN sum(blk_write_time) END AS blk_write_time_ms,
             (extract(epoch FROM max(stats_reset)) * 1000)::bigint AS reset_unix_ms
      FROM pg_stat_database) AS counted,
     (SELECT pg_has_role('pg_read_all_stats', 'USAGE') AS sees_all,
             CASE WHEN current_setting('log_min_duration_statement')::interval > interval '0'
                  THEN current_setting('log_min_duration_statement')::interval ELSE interval '1 s' END AS long) AS known,
     LATERAL (SELECT count(*) AS client_sessions,
                     count(*) FILTER (WHERE state = 'active' AND age >= long) AS long_statements,
                     (max(extract(epoch FROM age)) FILTER (WHERE state = 'active') * 1000)::float8 AS longest_statement_ms,
                     count(*) FILTER (WHERE state LIKE 'idle in transaction%') AS idle_in_transaction,
                     (max(extract(epoch FROM clock_timestamp() - xact_start)) FILTER (WHERE state LIKE 'idle in transaction%')
                      * 1000)::float8 AS longest_idle_in_transaction_ms
              FROM (SELECT *, clock_timestamp() - query_start AS age
                    FROM pg_stat_get_activity(CASE WHEN sees_all THEN NULL ELSE pg_backend_pid() END)
                    WHERE backend_type = 'client backend') AS client) AS sessions
