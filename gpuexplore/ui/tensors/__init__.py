"""The page Tensors."""
