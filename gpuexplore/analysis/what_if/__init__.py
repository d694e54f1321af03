"""One workload in every number format, on local and hypothetical devices."""
