"""Layers: how each is typed, what it computes, and what stays of it until its backward."""
