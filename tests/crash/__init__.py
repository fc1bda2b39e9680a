"""Power cuts: recordings, their contents after a cut, and planted bugs."""
