-- The function beneath pg_stat_activity, without the view's joins. Idle sessions, processes that wait for their next
-- work, the probe itself, and sessions that this role may not see (backend_type is NULL) are left out.
SELECT coalesce(wait_event_type, 'CPU') AS wait_event_type, coalesce(wait_event, 'CPU') AS wait_event, backend_type,
       count(*) AS count
FROM pg_stat_get_activity(NULL)
WHERE wait_event_type IS DISTINCT FROM 'Activity' AND state IS DISTINCT FROM 'idle' AND backend_type IS NOT NULL
      AND application_name NOT LIKE 'pgdyno probe%'
GROUP BY 1, 2, 3
