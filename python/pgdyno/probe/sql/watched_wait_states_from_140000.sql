-- The same as wait_events without the commands that report their progress, which take a quarter of its time: for looks in which no
-- session waits for a volume.
SELECT CASE WHEN hidden THEN 'Hidden' WHEN idle THEN 'Client' ELSE coalesce(wait_event_type, 'CPU') END AS wait_event_type,
       CASE WHEN hidden THEN 'Hidden' WHEN idle THEN 'ClientRead' ELSE coalesce(wait_event, 'CPU') END AS wait_event,
       coalesce(backend_type, 'client backend') AS backend_type,
       CASE WHEN NOT idle AND xact_start < clock_timestamp() - interval '1 s' THEN 'LONG TRANSACTION' END AS command,
       count(*) AS count
FROM (SELECT *, backend_type IS NULL OR (state = 'disabled' AND backend_type = 'client backend') AS hidden,
             coalesce(state LIKE 'idle%', false) AS idle
      FROM pg_stat_get_activity(NULL)
      WHERE coalesce(application_name, '') NOT LIKE 'pgdyno probe%' AND wait_event_type IS DISTINCT FROM 'Activity'
            AND (backend_type IS NOT NULL OR (usesysid IS NOT NULL AND datid IS NOT NULL AND datid > 0))) AS sessions
WHERE hidden OR NOT idle OR state_change > clock_timestamp() - interval '1 s'
GROUP BY 1, 2, 3, 4
