"""Reading a workload as a product of matrices, and preparing it for primitives."""
