"""The version of the package, which the build reads, too."""

__version__ = "0.1.0"
