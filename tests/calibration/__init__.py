"""How often the statistics are right."""
