"""Sessions of the engine beside libpq's."""
