"""The command line."""

from mfmadsl.cli.main import main

__all__ = ["main"]
