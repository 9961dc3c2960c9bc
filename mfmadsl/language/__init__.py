"""The `.mfma` language: text to checked model, and every mistake told."""

from mfmadsl.language.diagnostic import Diagnostic, LanguageError, Source, Span, did_you_mean
from mfmadsl.language.library import (
    Entries,
    SpecFileError,
    find,
    find_microkernel,
    library,
    library_files,
    load,
    load_entries,
    load_source,
    microkernels,
    read_source,
    reads,
)

__all__ = [
    "Diagnostic",
    "Entries",
    "LanguageError",
    "Source",
    "Span",
    "SpecFileError",
    "did_you_mean",
    "find",
    "find_microkernel",
    "library",
    "library_files",
    "load",
    "load_entries",
    "load_source",
    "microkernels",
    "read_source",
    "reads",
]
