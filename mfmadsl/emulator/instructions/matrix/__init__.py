"""Matrix-core instructions: what lies where, and what bits they give."""

from mfmadsl.emulator.instructions.matrix.instruction import compile_matrix, is_modelled, work_of

__all__ = ["compile_matrix", "is_modelled", "work_of"]
