"""What to buy for a measured load.

::

    a file of iostat, sar, CloudWatch ┐
    or a device that is watched now   ┴─ reading ─▶ Measured ─ demand ─▶ Demand ─┐
    the engine's catalogue ─ offers ─▶ limits, buckets and price of a volume ────┴─ advise ─▶ Advice ─▶ table, JSON, page

The prices and limits are the catalogue's; nothing of them stands here.
"""
