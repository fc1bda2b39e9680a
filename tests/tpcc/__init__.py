"""Transactions derived from TPC-C."""
