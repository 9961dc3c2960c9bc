"""What a main loop moves: from global memory to registers and into the LDS."""
