"""Published comparisons made again."""
