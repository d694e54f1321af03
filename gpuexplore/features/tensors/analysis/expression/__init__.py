"""The closed grammar that expressions are written in, and what reading one gives."""
