"""The order of a pipelined loop: prologue, iterations, epilogue, and instructions within."""
