"""Benches of power cuts: how many a sound server survives, which planted bugs are caught, and the verdict on full_page_writes."""
