"""The fidelity record: what was asked of a volume, what the model says, what fio measured; beside it, other emulators.

``make bench ONLY=fidelity`` measures the matrix (:mod:`tools.fidelity.matrix`), judges it
(:mod:`tools.fidelity.claims`) and writes the reference's page on fidelity (:mod:`tools.fidelity.page`). Every point is
kept as JSON in ``results/fidelity/``; a record that was interrupted goes on where it stopped.
"""
