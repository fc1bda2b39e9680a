"""The provider's figures, as the tests need them."""

from __future__ import annotations

RULES = {
    "schedules_max": 4,
    "interval_hours": [1, 2, 3, 4, 6, 8, 12, 24],
    "cron_hours_min": 1,
    "cron_days_max": 366,
    "count_max": 1000,
    "age_days_max": 36_500,
    "regions_max": 3,
    "zones_max": 10,
    "archive_days_min": 90,
    "archive_schedule_days_min": 28,
}
PRICES = {"gib_month_usd": 0.05, "archive_gib_month_usd": 0.0125, "fast_restore_hour_usd": 0.75}
