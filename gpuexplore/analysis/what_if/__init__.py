"""One workload in every number format, on devices that are here or not."""
