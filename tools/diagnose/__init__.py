"""How often `pgdyno diagnose` is right: servers under loads whose limit is known, watched from outside (``make bench ONLY=diagnose``)."""
