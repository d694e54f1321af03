"""Shared values, and the shared rules for text, units and statistics.

`model.py` has cases, experiments, results and runs; `hardware.py` devices and their peaks; `dtypes.py` the one table
of dtypes; `errors.py` what is raised. Nothing here measures, stores or draws, and nothing imports another folder. What
two folders need and neither owns belongs here.
"""
