"""The page Dtype what-if."""
