"""How often the limit that binds is named: runs whose limit is known, drawn from a seed (``make bench ONLY=attribution``)."""
