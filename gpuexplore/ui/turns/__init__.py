"""Work of pages that waits its turn: behind measurements, and between visitors."""
