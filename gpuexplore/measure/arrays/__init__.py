"""Values of a case: inputs as they are drawn, large ones where they stay, and the sums that check them."""
