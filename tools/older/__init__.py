"""Servers of PostgreSQL versions that published documents have and distributions package no more: fetched, checked, installed."""
