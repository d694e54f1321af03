"""Mistakes in what a time is divided by: FLOPs and peaks."""
