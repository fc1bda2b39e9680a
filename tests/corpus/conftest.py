"""A place to restore dumps in, as the tests of databases have it."""

from ..database.conftest import clusters_made_before, place

__all__ = ["clusters_made_before", "place"]
