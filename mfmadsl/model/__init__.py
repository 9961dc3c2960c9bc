"""What an intrinsic is: types, architectures, layouts. Knows no text, no TVM and no emulator."""

from mfmadsl.model.architecture import ARCHITECTURES, WAVE_SIZE, Architecture, architecture
from mfmadsl.model.closed_form import ClosedForm, Digit, closed_form
from mfmadsl.model.intrinsic import REGISTER_BITS, Intrinsic, Location, Operand
from mfmadsl.model.layout import Layout, NoClosedFormError
from mfmadsl.model.types import ELEMENT_TYPES, ElementType

__all__ = [
    "ARCHITECTURES",
    "ELEMENT_TYPES",
    "REGISTER_BITS",
    "WAVE_SIZE",
    "Architecture",
    "ClosedForm",
    "Digit",
    "ElementType",
    "Intrinsic",
    "Layout",
    "Location",
    "NoClosedFormError",
    "Operand",
    "architecture",
    "closed_form",
]
