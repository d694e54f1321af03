"""The page Memory: its choices and its view."""
