"""The page Compare: two runs beside each other."""
