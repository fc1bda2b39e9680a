"""Tests of how installing is tried: the record's claims and page, the Containerfile, and the record itself as a bench."""
