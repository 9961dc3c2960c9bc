"""Triton as a peer: its kernels, compiled without a GPU, run in the emulator."""
