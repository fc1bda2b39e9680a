"""Whether pgdyno's driver is the original's equal: the same server, the same tables, the same statements, as many a second.

``make bench ONLY=equivalence`` measures, judges, and writes a page of the reference.
"""
