"""Pages about a kernel: its profile, beside another's, and its faults."""

from mfmadsl.report.kernel_page.faults import faults_page
from mfmadsl.report.kernel_page.profile import Profiled, profile_page
from mfmadsl.report.kernel_page.tiling import SOURCES, tiling_facts

__all__ = ["SOURCES", "Profiled", "faults_page", "profile_page", "tiling_facts"]
