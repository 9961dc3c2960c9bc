"""The explorer: one page, with nothing beside it, in which the whole library can be looked at."""

from mfmadsl.report.explorer.page import explorer_page, library_exports

__all__ = ["explorer_page", "library_exports"]
