"""What watching a server costs it, and what is left behind: nothing (``make bench ONLY=diagnose-cost``)."""
