"""What share of a peak a result reached: rates, the peaks it is compared with, and whether a rate can be."""
