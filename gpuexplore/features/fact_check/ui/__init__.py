"""The page Fact check."""
