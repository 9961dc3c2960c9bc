"""What each instruction computes, one lane at a time, written from the ISA manuals.

Numbers are the bits of registers as Python integers; floats are exact fractions in between.
"""
