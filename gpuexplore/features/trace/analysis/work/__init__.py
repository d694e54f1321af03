"""The work of one call of torch from the shapes of its arguments: its kind, its FLOPs, the bytes it moves."""
