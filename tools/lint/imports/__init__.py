"""What imports what, read from the source."""
