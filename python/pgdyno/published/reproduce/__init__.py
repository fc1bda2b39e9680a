"""Published comparisons made again: the experiment files of a document, their results beside its figures, and a verdict on each."""
