"""Wait states that software must put between two instructions, since the chip does not wait.

Sources: the CDNA ISA manuals, section 4.5 ("Manually Inserted Wait States") and, for matrix
instructions, section 7 ("Dependency Resolution: Required Independent Instructions"); LLVM 22,
`GCNHazardRecognizer`, which inserts an `s_nop` for each.
"""

from mfmadsl.emulator.sanitizer.wait_states.paths import lacking, ways
from mfmadsl.emulator.sanitizer.wait_states.sequence import Sequences, WaveSequences

__all__ = ["Sequences", "WaveSequences", "lacking", "ways"]
