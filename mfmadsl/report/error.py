"""What is wrong with a file that describes a kernel, or with the text of an argument."""

from __future__ import annotations

from mfmadsl.error import MfmadslError


class KernelFileError(MfmadslError, ValueError):
    """A file or an argument that is not what it should be, and how to mend it."""
