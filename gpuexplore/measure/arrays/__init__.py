"""Values of a case: random inputs, large arrays on their device, and the sums that check them."""
