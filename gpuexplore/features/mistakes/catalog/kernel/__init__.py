"""Mistakes inside a kernel of one's own."""
