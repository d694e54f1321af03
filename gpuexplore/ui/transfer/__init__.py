"""The page Transfers."""
