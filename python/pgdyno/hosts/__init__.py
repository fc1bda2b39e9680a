"""Other hosts: who may take part, what they are, and what runs there. Dask's ``distributed`` carries all of it."""
