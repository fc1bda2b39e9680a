"""What every room uses: errors, the engine, the catalogue, endpoints and sessions, quantities and how numbers are written."""
