"""What a main loop does while the matrix cores work."""

OVERLAPS = ("nothing", "loads", "fragments", "all")
"""What comes while the matrix cores work, each with those before it: the next turn's loads from
memory, the next register step's fragments from the LDS, and all of that among the matrix
instructions, in an order that LLVM keeps. `all` is what a loop gets that says nothing."""
