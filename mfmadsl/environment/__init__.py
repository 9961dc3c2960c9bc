"""What a machine has that is not ours: versions of TVM, a linker, compilers, HIP.

Only the standard library is imported, so that it can be asked where something else is broken.
"""
