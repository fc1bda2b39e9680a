"""The flow of an experiment: plan it, prepare its world, make its runs in order, resume what was interrupted."""
