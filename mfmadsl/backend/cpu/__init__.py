"""A scheduled function to machine code of a CPU."""
