"""Values that are passed around, and the rules for text, units and statistics that all others share.

`model.py` has cases, experiments, results and runs; `hardware.py` devices and their peaks; `dtypes.py` the one table
of dtypes; `errors.py` what is raised. Nothing here measures, stores or draws, and nothing imports another folder. What
two folders need and neither owns belongs here.
"""
