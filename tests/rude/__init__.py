"""Everything that a rude test of every command once found, as a table that is run: `make bench ONLY=rude`."""
