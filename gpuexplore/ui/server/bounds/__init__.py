"""Bounds that keep a server answering: of its connections and pages, of what they upload, and of its own log."""
