"""The page Atlas."""
