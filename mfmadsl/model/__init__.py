"""What an intrinsic is: types, architectures, layouts. Knows no text, no TVM and no emulator."""

from mfmadsl.model.accelerator import Accelerator, TileBuffer
from mfmadsl.model.architecture import Architecture
from mfmadsl.model.attention_tiling import AttentionTiling
from mfmadsl.model.bit_matrix import BitMatrix, bit_matrix
from mfmadsl.model.chip_name import (
    CHIP_NAMES,
    architecture,
    chip_called,
    product_called,
    product_names,
    unknown_chip,
)
from mfmadsl.model.chips import (
    ARCHITECTURES,
    CDNA,
    DEFAULT_ARCH,
    assumed,
)
from mfmadsl.model.closed_form import ClosedForm, Digit, closed_form
from mfmadsl.model.cpu import CPUS, FEATURES, TILE_ROWS, Cpu, cpu
from mfmadsl.model.fragment import Fragment
from mfmadsl.model.intrinsic import (
    EXTENT_OF,
    INDICES,
    REGISTER_BITS,
    SPARSE_GROUP,
    SPARSE_STORED,
    Intrinsic,
    Location,
    Operand,
)
from mfmadsl.model.layout import Layout, NoClosedFormError
from mfmadsl.model.microkernel import Microkernel, Step, VectorOperand
from mfmadsl.model.modifier import (
    MODIFIERS,
    Modifiers,
    check_modifiers,
    lane_sources,
    negation_chips,
    source_block,
    source_lane,
)
from mfmadsl.model.overlap import DEFAULT_OVERLAP, OVERLAPS, Overlap
from mfmadsl.model.pack import Packed, packed
from mfmadsl.model.product import GpuProduct
from mfmadsl.model.products import PRODUCTS, product_of
from mfmadsl.model.read import Read
from mfmadsl.model.tiling import Tiling
from mfmadsl.model.types import EIGHT_BIT_FLOATS, ELEMENT_TYPES, INDEX, ElementType
from mfmadsl.model.unscaled import unscaled
from mfmadsl.model.upright import numbered_up, upright

__all__ = [
    "ARCHITECTURES",
    "CDNA",
    "CHIP_NAMES",
    "CPUS",
    "DEFAULT_ARCH",
    "DEFAULT_OVERLAP",
    "EIGHT_BIT_FLOATS",
    "ELEMENT_TYPES",
    "EXTENT_OF",
    "FEATURES",
    "INDEX",
    "INDICES",
    "MODIFIERS",
    "OVERLAPS",
    "PRODUCTS",
    "REGISTER_BITS",
    "SPARSE_GROUP",
    "SPARSE_STORED",
    "TILE_ROWS",
    "Accelerator",
    "Architecture",
    "AttentionTiling",
    "BitMatrix",
    "ClosedForm",
    "Cpu",
    "Digit",
    "ElementType",
    "Fragment",
    "GpuProduct",
    "Intrinsic",
    "Layout",
    "Location",
    "Microkernel",
    "Modifiers",
    "NoClosedFormError",
    "Operand",
    "Overlap",
    "Packed",
    "Read",
    "Step",
    "TileBuffer",
    "Tiling",
    "VectorOperand",
    "architecture",
    "assumed",
    "bit_matrix",
    "check_modifiers",
    "chip_called",
    "closed_form",
    "cpu",
    "lane_sources",
    "negation_chips",
    "numbered_up",
    "packed",
    "product_called",
    "product_names",
    "product_of",
    "source_block",
    "source_lane",
    "unknown_chip",
    "unscaled",
    "upright",
]
