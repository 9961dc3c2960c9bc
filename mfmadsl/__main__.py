"""`python -m mfmadsl` is the command line."""

from mfmadsl.cli import main

main(prog_name="mfmadsl")
