"""Lessons on a page: one step at a time, guess first, then the own figures, why, and the rule to keep."""
