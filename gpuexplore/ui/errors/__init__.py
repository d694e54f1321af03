"""The page Errors."""
