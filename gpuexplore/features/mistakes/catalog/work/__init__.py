"""Mistakes in what is timed: more, less or other work than what is claimed."""
