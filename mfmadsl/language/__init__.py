"""The `.mfma` language: text to checked model, and every mistake told."""

from mfmadsl.language.check import Checked, Entries, check_source
from mfmadsl.language.diagnostic import Diagnostic, LanguageError, Source, Span
from mfmadsl.language.document import SpecFileError, read_source
from mfmadsl.language.library import (
    find,
    find_microkernel,
    library,
    library_files,
    load,
    load_entries,
    load_source,
    microkernels,
    reads,
)

__all__ = [
    "Checked",
    "Diagnostic",
    "Entries",
    "LanguageError",
    "Source",
    "Span",
    "SpecFileError",
    "check_source",
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
