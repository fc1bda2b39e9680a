-- Of a server whose clients are not known: idle sessions that did something within the last second are clients at work, which
-- wait for their client; those that have been idle for longer are not counted. Sessions that this role may not see are Hidden.
-- Commands are those that report their progress. They matter where a session waits for a volume, and are asked for only in a look
-- in which one does, or in which one sleeps as a vacuum does: the function is not called for NULL. What a session reads gets into
-- the counters when its transaction ends, at most once a second (PGSTAT_MIN_INTERVAL): a transaction that has lasted for longer has
-- a name of its own.
WITH sessions AS MATERIALIZED (
    SELECT pid, backend_type, wait_event_type, wait_event, xact_start,
           backend_type IS NULL OR (state = 'disabled' AND backend_type = 'client backend') AS hidden,
           coalesce(state LIKE 'idle%', false) AS idle
    FROM pg_stat_get_activity(NULL)
    WHERE coalesce(application_name, '') NOT LIKE 'pgdyno probe%' AND wait_event_type IS DISTINCT FROM 'Activity'
          AND (backend_type IS NOT NULL OR (usesysid IS NOT NULL AND datid IS NOT NULL AND datid > 0))
          AND (backend_type IS NULL OR state IS NULL OR state NOT LIKE 'idle%'
               OR state_change > clock_timestamp() - interval '1 s'))
SELECT CASE WHEN hidden THEN 'Hidden' WHEN idle THEN 'Client' ELSE coalesce(wait_event_type, 'CPU') END AS wait_event_type,
       CASE WHEN hidden THEN 'Hidden' WHEN idle THEN 'ClientRead' ELSE coalesce(wait_event, 'CPU') END AS wait_event,
       coalesce(backend_type, 'client backend') AS backend_type,
       coalesce(command, CASE WHEN NOT idle AND xact_start < clock_timestamp() - interval '1 s' THEN 'LONG TRANSACTION' END) AS command,
       count(*) AS count
FROM sessions
     LEFT JOIN (SELECT pid, CASE kind WHEN 'COPY' THEN CASE param5 WHEN 1 THEN 'COPY FROM' ELSE 'COPY TO' END ELSE kind END AS command
                FROM unnest(CASE WHEN EXISTS (SELECT FROM sessions WHERE wait_event_type IN ('IO', 'IPC', 'Timeout'))
                                 THEN '{VACUUM,ANALYZE,CLUSTER,CREATE INDEX,COPY}'::text[] END) AS kind,
                     LATERAL pg_stat_get_progress_info(kind)) AS progress USING (pid)
GROUP BY 1, 2, 3, 4
