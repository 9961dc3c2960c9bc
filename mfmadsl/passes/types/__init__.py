"""Types and functions that the chip computes in other ones, or not at all."""
