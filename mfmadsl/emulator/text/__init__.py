"""Assembly as LLVM writes it, and what its metadata says."""
