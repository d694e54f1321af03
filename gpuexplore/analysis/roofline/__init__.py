"""The roofs of a device and the results below them."""
