-- 19 has REPACK in place of CLUSTER and VACUUM FULL.
-- Of a server whose clients are not known: idle sessions that did something within the last second are clients at work, which
-- wait for their client; those that have been idle for longer are not counted. Sessions that this role may not see are Hidden.
-- Commands are those that report their progress. What a session reads gets into the counters when its transaction ends, at most
-- once a second (PGSTAT_MIN_INTERVAL): a transaction that has lasted for longer has a name of its own.
SELECT CASE WHEN hidden THEN 'Hidden' WHEN idle THEN 'Client' ELSE coalesce(wait_event_type, 'CPU') END AS wait_event_type,
       CASE WHEN hidden THEN 'Hidden' WHEN idle THEN 'ClientRead' ELSE coalesce(wait_event, 'CPU') END AS wait_event,
       coalesce(backend_type, 'client backend') AS backend_type,
       coalesce(command, CASE WHEN NOT idle AND xact_start < clock_timestamp() - interval '1 s' THEN 'LONG TRANSACTION' END) AS command,
       count(*) AS count
FROM (SELECT *, backend_type IS NULL OR (state = 'disabled' AND backend_type = 'client backend') AS hidden,
             coalesce(state LIKE 'idle%', false) AS idle
      FROM pg_stat_get_activity(NULL)
      WHERE coalesce(application_name, '') NOT LIKE 'pgdyno probe%' AND wait_event_type IS DISTINCT FROM 'Activity'
            AND (backend_type IS NOT NULL OR (usesysid IS NOT NULL AND datid IS NOT NULL AND datid > 0))) AS sessions
     LEFT JOIN (SELECT pid, 'VACUUM' AS command FROM pg_stat_get_progress_info('VACUUM')
                UNION ALL SELECT pid, 'ANALYZE' FROM pg_stat_get_progress_info('ANALYZE')
                UNION ALL SELECT pid, 'REPACK' FROM pg_stat_progress_repack
                UNION ALL SELECT pid, 'CREATE INDEX' FROM pg_stat_get_progress_info('CREATE INDEX')
                UNION ALL SELECT pid, CASE param5 WHEN 1 THEN 'COPY FROM' ELSE 'COPY TO' END
                          FROM pg_stat_get_progress_info('COPY')) AS progress USING (pid)
WHERE hidden OR NOT idle OR state_change > clock_timestamp() - interval '1 s'
GROUP BY 1, 2, 3, 4
