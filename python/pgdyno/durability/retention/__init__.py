"""Retention of snapshots, as Amazon Data Lifecycle Manager has it: which snapshots exist when, as a pure function of time."""
