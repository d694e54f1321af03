"""Features: each a folder with its page, command, analysis, charts and measuring, switched on in the registry."""
