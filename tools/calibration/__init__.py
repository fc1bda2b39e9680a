"""How often pgdyno's statistics are right, on series whose truth is known.

``make bench ONLY=calibration`` draws 2,000 series or more for each case (:mod:`tools.calibration.cases`) from the generators
in :mod:`tools.calibration.series`, gives them to the functions that judge real runs, and writes the reference's page on
calibration (:mod:`tools.calibration.page`). `make test` does the same with 200 and wider bounds.
"""
