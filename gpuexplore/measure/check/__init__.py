"""Checks that a call may start, computes correctly, and leaves the state of the process unchanged."""
