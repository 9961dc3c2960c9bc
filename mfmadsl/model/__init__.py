"""What an intrinsic is: types, architectures, layouts. Knows no text, no TVM and no emulator."""

from mfmadsl.model.accelerator import Accelerator, TileBuffer
from mfmadsl.model.architecture import ARCHITECTURES, WAVE_SIZE, Architecture, architecture
from mfmadsl.model.bit_matrix import BitMatrix, bit_matrix
from mfmadsl.model.closed_form import ClosedForm, Digit, closed_form
from mfmadsl.model.intrinsic import (
    REGISTER_BITS,
    SPARSE_GROUP,
    SPARSE_STORED,
    Intrinsic,
    Location,
    Operand,
)
from mfmadsl.model.layout import Layout, NoClosedFormError
from mfmadsl.model.modifier import (
    MODIFIERS,
    NEGATION_CHIPS,
    Modifiers,
    check_modifiers,
    source_block,
    source_lane,
)
from mfmadsl.model.pack import Packed, packed
from mfmadsl.model.read import Read
from mfmadsl.model.types import ELEMENT_TYPES, INDEX, ElementType
from mfmadsl.model.unscaled import unscaled
from mfmadsl.model.upright import numbered_up, upright

__all__ = [
    "ARCHITECTURES",
    "ELEMENT_TYPES",
    "INDEX",
    "MODIFIERS",
    "NEGATION_CHIPS",
    "REGISTER_BITS",
    "SPARSE_GROUP",
    "SPARSE_STORED",
    "WAVE_SIZE",
    "Accelerator",
    "Architecture",
    "BitMatrix",
    "ClosedForm",
    "Digit",
    "ElementType",
    "Intrinsic",
    "Layout",
    "Location",
    "Modifiers",
    "NoClosedFormError",
    "Operand",
    "Packed",
    "Read",
    "TileBuffer",
    "architecture",
    "bit_matrix",
    "check_modifiers",
    "closed_form",
    "numbered_up",
    "packed",
    "source_block",
    "source_lane",
    "unscaled",
    "upright",
]
