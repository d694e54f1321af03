"""Traces of torch.profiler as tables of operations.

Nothing is measured, and torch is not imported: a trace is a file, and the rest is arithmetic on its events.
"""
