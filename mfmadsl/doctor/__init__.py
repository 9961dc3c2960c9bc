"""What works on this machine and what does not, and what to do about it: `mfmadsl doctor`.

Nothing that may be broken is imported here: a child process does that, and may end as it likes.
"""

from mfmadsl.doctor.examine import examine
from mfmadsl.doctor.finding import Finding, State, works
from mfmadsl.doctor.report import doctor_json, doctor_text

__all__ = ["Finding", "State", "doctor_json", "doctor_text", "examine", "works"]
