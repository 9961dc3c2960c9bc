"""Where modules that `load_intrinsic` makes live, beside the runtime that they share.

`mfmadsl compile` writes that runtime beside the modules of its folder, letter by letter, so that it
imports nothing but TVM.
"""
