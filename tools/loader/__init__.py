"""How fast `pgdyno load` is beside COPY itself and other loaders: measured, judged, and its page written."""
