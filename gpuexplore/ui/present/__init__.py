"""A run on a projector: one chart a screen, large type, lines revealed one by one."""
