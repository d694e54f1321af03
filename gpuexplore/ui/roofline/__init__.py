"""The page Roofline."""
