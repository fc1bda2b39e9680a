"""What holds of a volume holds whichever way its requests arrive: measurements of minutes, by ``make bench ONLY=transport``."""
