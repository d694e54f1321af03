"""The analysis of one run, worked out once; every table, chart and sentence reads it here."""
