"""The page Benchmark: the form of an experiment and its settings in the URL."""
