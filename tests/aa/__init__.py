"""Live experiments of equal volumes."""
