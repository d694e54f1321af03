"""A run on a page: its progress, what it means, charts, tables, exports."""
