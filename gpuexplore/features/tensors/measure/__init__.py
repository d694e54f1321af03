"""Reading a tensor against its strides."""
