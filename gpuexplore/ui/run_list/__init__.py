"""The page Runs: what was measured before, found, named and deleted."""
