"""The meaning of results: rates, utilization, bounds, speedups, predictions and sentences; arithmetic on values.

`run/analyze.py` alone judges a run, `compare.py` two of them. `utilization/` chooses peaks and computes MFU, `roofs.py`
rooflines, `diagnosis/` names what takes the time, one rule a function, `verdict/` compares times with their intervals.
`prediction/` says how long a call should take on a GPU that is not there, `what_if/` whole models, `occupancy.py` how
full a kernel can make a GPU.

It imports operations and below, draws nothing, measures nothing, and never loads torch or numba. A column of a run's
table is a line of `run/json_report.py` and `ui/run/table.py`; a diagnosis a rule of `diagnosis/`, see
CONTRIBUTING.md.
"""
