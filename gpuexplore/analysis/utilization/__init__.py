"""The share of a peak that a result reached: rates, the peaks it is compared with, and plausibility of rates."""
