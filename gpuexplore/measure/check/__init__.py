"""Checks that a call may start, computes what it should, and leaves the process as it was."""
