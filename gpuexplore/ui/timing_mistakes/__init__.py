"""The page Timing mistakes."""
