"""Which product of matrices is asked for: extents, types, layouts, and what follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from tvm import te
from tvm.tirx import PrimFunc

from mfmadsl.argument import check_choice, check_extent, check_flag, check_list, check_type
from mfmadsl.epilogue import STEPS, check_steps, fused
from mfmadsl.error import ArgumentError
from mfmadsl.gemm import blocks
from mfmadsl.gemm.experts import MOST_EXPERTS, even_ends
from mfmadsl.model import ELEMENT_TYPES, Intrinsic, Tiling, architecture
from mfmadsl.schedule import (
    ScheduleError,
    block_scaled_matmul,
    grouped_matmul,
    scaled_matmul,
    sparse_matmul,
)
from mfmadsl.schedule.product.block_scaled import FLOATS
from mfmadsl.schedule.product.described import described_types
from mfmadsl.schedule.workload.dense import TYPES, product
from mfmadsl.schedule.workload.followed import followed
from mfmadsl.schedule.workload.mx_output import GROUP, mx_output
from mfmadsl.schedule.workload.mx_output import TYPES as OUTPUT_TYPES
from mfmadsl.schedule.workload.quantised import (
    ACTIVATIONS,
    FORMATS,
    WeightFormat,
    group_of,
    quantised_matmul,
)

PLAIN, SCALED, BLOCKS, SPARSE = FORMS = ("plain", "scaled", "blocks", "sparse")
"""What A and B are: all that is multiplied, or what scales or an index belong to."""

_SPOKEN = {SCALED: "scaled", BLOCKS: "block-scaled", SPARSE: "sparse"}
_SUMS = {"float64": "float64", "int8": "int32"}  # of other types float32


@dataclass(frozen=True)
class Problem:
    """C[m, n] = A[m, k] x B[k, n] on one chip; B may lie as n x k, and A as k x m.

    `gemm_schedule` chooses the instruction if `intrinsic` is None. `shared_scope`, TVM's scope of
    the tiles in the LDS ("shared" or "shared.dyn"), asks for the simple kernel of `mfma_schedule`.

    `dtypes` are those of A, B and C, None where the instruction says it, or else float16 for A, the
    same for B, and the type of the sums for C. `batch` is the number of matrices of each kind, of
    which an instruction of several blocks takes as many at once. A scaled one of eight-bit floats
    multiplies without scales.
    `epilogue` names what follows the product (`epilogue.STEPS`), in the type of the sums; what its
    steps read are arguments between B and C. `tiling` has fields of `Tiling` to be changed.

    The `form` "scaled" says that A and B are in MX formats: float8_e4m3fn, float8_e5m2, and those
    of six and four bits, packed along k, with scales for each 32 of them (`scaled_matmul`);
    "blocks", that A and B are floats of eight bits, of which blocks of 128 have a scale in float32
    (`block_scaled_matmul`); "sparse", that A stores two of each four elements along k
    (`sparse_matmul`). An instruction that has no other form says it, too.

    `weights` says that B is stored in a few bits, in a format of `quantised_matmul`, with a scale
    for each `group` of K, the format's own if that is None.

    `mx_output` is the type of the elements of a C in an MX format (`schedule.mx_output`).

    With `experts` rows are sorted by expert, and B is [experts, n, k] (`grouped_matmul`): plain, in
    `blocks`, or of `weights`. With `tokens` A has so many rows, and each row of C is of one.
    """

    intrinsic: Intrinsic | None
    arch: str
    m: int
    n: int
    k: int
    b_transposed: bool = False
    shared_scope: str | None = None
    a_transposed: bool = False
    dtypes: tuple[str | None, str | None, str | None] = (None, None, None)
    batch: int | None = None
    epilogue: tuple[str, ...] = ()
    tiling: Mapping[str, Any] = field(default_factory=dict)
    form: str = PLAIN
    weights: str | None = None
    group: int | None = None
    mx_output: str | None = None
    experts: int | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        """Raise ArgumentError for what is no intrinsic, chip, extent, type, step or field."""
        if self.intrinsic is not None:
            check_type("intrinsic", self.intrinsic, Intrinsic, "an Intrinsic, as `find` gives it")
        object.__setattr__(self, "arch", architecture(self.arch).name)
        for name in ("m", "n", "k"):
            check_extent(name, getattr(self, name))
        if self.batch is not None:
            check_extent("batch", self.batch)
        check_flag("a_transposed", self.a_transposed)
        check_flag("b_transposed", self.b_transposed)
        check_choice("form", self.form, FORMS)
        if self.form == PLAIN and self.intrinsic is not None:
            object.__setattr__(self, "form", _only_form(self.intrinsic))
        if self.shared_scope is not None:
            check_choice("shared_scope", self.shared_scope, ("shared", "shared.dyn"))
        if self.weights is not None:
            check_choice("weights", self.weights, FORMATS)
            if self.b_transposed:
                raise ArgumentError(
                    f"b_transposed: weights of {self.weights} lie as that format says; leave it out"
                )
        elif self.group is not None:
            raise ArgumentError("group: belongs to `weights`, which are not given")
        for name in ("experts", "tokens"):
            if getattr(self, name) is not None:
                check_extent(name, getattr(self, name))
        if self.experts == 1:
            raise ArgumentError("experts: 1 has one matrix for all rows: leave it out")
        if self.experts is not None and self.experts > MOST_EXPERTS:
            raise ArgumentError(f"experts: is at most {MOST_EXPERTS}, not {self.experts}")
        if self.tokens is not None and self.experts is None:
            raise ArgumentError("tokens: are of a product with `experts`, which are not given")
        check_list("dtypes", self.dtypes, "the types of A, B and C, or None")
        if len(self.dtypes) != 3:
            raise ArgumentError(f"dtypes: are three, of A, B and C, not {len(self.dtypes)}")
        for dtype in self.dtypes:
            if dtype is not None:
                check_choice("dtypes", dtype, TYPES)
        if self.mx_output is not None:
            check_choice("mx_output", self.mx_output, OUTPUT_TYPES)
        check_list("epilogue", self.epilogue, "a list of steps")
        for step in self.epilogue:
            check_choice("epilogue", step, STEPS)
        check_type("tiling", self.tiling, Mapping, "fields of Tiling and their values")
        for field_name in self.tiling:
            check_choice("tiling", field_name, [each.name for each in fields(Tiling)])

    @property
    def types(self) -> tuple[str, str, str]:
        """The types of A, B and C."""
        own = self.intrinsic
        a, b, c = self.dtypes
        a = a or (own.a.type.dtype if own else "float16")
        b = b or (own.b.type.dtype if own and self.dtypes[0] is None else a)
        return a, b, c or self.sum_type

    @property
    def sum_type(self) -> str:
        """What products are added up in."""
        if self.intrinsic is not None:
            return self.intrinsic.c.type.dtype
        return _SUMS.get(self.dtypes[0] or "float16", "float32")

    @property
    def name(self) -> str:
        """What its kernels are called: layouts, types of A, B and C, extents, and what follows."""
        stored = self.weight_format
        sides = (self.a_transposed, self.b_transposed if stored is None else stored.by_rows)
        layouts = "".join("t" if transposed else "n" for transposed in sides)
        known = {t.name: t.short for t in ELEMENT_TYPES.values()}
        types = [known.get(dtype, dtype) for dtype in self.types]
        if self.form != PLAIN:
            types.insert(0, self.form)
        if self.weights is not None:
            types[1] = self.weights if self.group is None else f"{self.weights}_{self.group}"
        if self.mx_output is not None:
            types[-1] = f"mx{known[self.mx_output]}"
        if self.experts is not None:
            given = "" if self.tokens is None else f"of{self.tokens}"
            types.insert(0, f"experts{self.experts}{given}")
        extents = "x".join(str(e) for e in (self.batch, self.m, self.n, self.k) if e is not None)
        return "_".join(["gemm", layouts, *types, extents, *self.epilogue])

    def check_types(self) -> None:
        """Raise ScheduleError for steps or a type of C that the sums cannot have, and for what
        scaled or sparse operands have not."""
        if self.experts is not None:
            self._check_experts()
        if self.weights is not None:
            self._check_weights()
        if self.form != PLAIN:
            self._check_form()
        elif few := [each for each in self.types if _bits(each) < 8]:
            found = f"{few[0]} has fewer than eight bits: such elements are multiplied with scales,"
            if self.experts is not None:
                raise ScheduleError(f"{found} and those of experts are `weights`, such as mxfp4")
            raise ScheduleError(f"{found} `--scales` (`form='scaled'`)")
        check_steps(self.epilogue, self.sum_type)
        c = self.types[2]
        if self.mx_output is not None:
            self._check_output()
        if c != self.sum_type and not {c, self.sum_type} <= {"float16", "bfloat16", "float32"}:
            raise ScheduleError(
                f"C is {c}, but sums of {self.types[0]} are {self.sum_type}: only those in float32 "
                "are rounded, to float16 or bfloat16"
            )

    def _check_output(self) -> None:
        if self.shared_scope is not None:
            raise ScheduleError("a simple kernel has no output in an MX format")
        if (c := self.types[2]) != "float32":
            raise ScheduleError(f"an output in an MX format is made of float32, and C is {c}")
        if self.n % GROUP:
            raise ScheduleError(f"n: {self.n} is no multiple of {GROUP}, which share a scale of C")

    def _check_form(self) -> None:
        beyond = {"transposed A": self.a_transposed, "simple kernel": self.shared_scope}
        if asked := [name for name, value in beyond.items() if value]:
            raise ScheduleError(
                f"a product of {_SPOKEN[self.form]} operands has no {' and no '.join(asked)}"
            )
        if not self.b_transposed and self.form in (SCALED, BLOCKS):
            raise ScheduleError(
                "a scaled B lies as N x K: say `--trans-b` (`b_transposed=True`), too"
            )
        if self.form == BLOCKS:
            self._check_blocks()
            return
        # Scaled elements become bfloat16 on a chip without such instructions.
        known = described_types(self.form == SPARSE, self.arch if self.form == SPARSE else None)
        if not known:
            raise ScheduleError(f"{self.arch} has no matrix instructions of {self.form} operands")
        for place, dtype in enumerate(self.types[:2]):
            own = list(dict.fromkeys(pair[place] for pair in known))
            if dtype not in own:
                raise ScheduleError(
                    f"{dtype} is no type of {self.form} operands: there are {', '.join(own)}"
                )
        if self.types[:2] not in known:
            raise ScheduleError(
                f"{self.arch} multiplies no {self.form} {self.types[0]} by {self.types[1]}"
            )

    @property
    def weight_format(self) -> WeightFormat | None:
        """How B is stored, if that is in a few bits."""
        return None if self.weights is None else FORMATS[self.weights]

    @property
    def weight_group(self) -> int:
        """How many k of B have a scale in common. Raises ArgumentError for what is no such group,
        and for extents of no whole groups."""
        assert self.weight_format is not None
        return group_of(self.weight_format, self.n, self.k, self.group)

    @property
    def rows_parameter(self) -> int:
        """Where among the arguments the rows of experts are told, if there are experts."""
        return 2 if self.form == BLOCKS else 1

    @property
    def argument_values(self) -> dict[str, str]:
        """What the rows of experts are in a profile, as `mfmadsl profile --arg` takes it."""
        if self.experts is None:
            return {}
        ends = {"ENDS": ",".join(map(str, even_ends(self.m, self.experts)))}
        return ends if self.tokens is None else {"ROWS": f"0..{self.tokens - 1}", **ends}

    def _check_weights(self) -> None:
        beyond = {
            "transposed A": self.a_transposed, "simple kernel": self.shared_scope,
            "batch": self.batch, "other form": self.form != PLAIN,
        }  # fmt: skip
        if asked := [name for name, value in beyond.items() if value]:
            raise ScheduleError(f"a product of quantised weights has no {' and no '.join(asked)}")
        a, b, _ = self.types
        if a not in ACTIVATIONS or a != b:
            raise ScheduleError(
                f"quantised weights become the type of A, {' or '.join(ACTIVATIONS)}, not "
                + (a if a == b else f"{b} where A is {a}")
            )
        _ = self.weight_group

    def _check_experts(self) -> None:
        beyond = {
            "transposed A": self.a_transposed, "simple kernel": self.shared_scope,
            "batch": self.batch, "scaled operands": self.form == SCALED,
            "sparse operand": self.form == SPARSE,
        }  # fmt: skip
        if asked := [name for name, value in beyond.items() if value]:
            raise ScheduleError(f"a product of experts has no {' and no '.join(asked)}")
        if not self.b_transposed and self.weights is None:
            raise ScheduleError(
                "each expert's B lies as N x K: say `--trans-b` (`b_transposed=True`), too"
            )

    def _check_blocks(self) -> None:
        for dtype in self.types[:2]:
            if dtype not in FLOATS:
                known = ", ".join(sorted(FLOATS))
                raise ScheduleError(f"{dtype} is no type of scaled blocks: there are {known}")

    def workload(self) -> PrimFunc:
        """What is to be computed, as `gemm_schedule` takes it."""
        plain = self._with_plain_output()
        workload = plain if self.mx_output is None else mx_output(plain, self.mx_output)
        return workload.with_attr("global_symbol", self.name)

    def _with_plain_output(self) -> PrimFunc:
        """The product with C in its own type."""
        a_type, b_type, c_type = self.types
        follows = bool(self.epilogue) or c_type != self.sum_type
        if self.form != PLAIN or self.weights is not None or self.experts is not None:
            written = self._described()
            if follows:
                written = followed(written, lambda c: fused(c, self.epilogue, c_type))
            return written
        a, b, c = product(
            (self.m, self.n, self.k), (a_type, b_type, self.sum_type),
            (self.a_transposed, self.b_transposed), self.batch, "product" if follows else "C",
        )  # fmt: skip
        operands: list[Any] = []
        if follows:
            operands, c = fused(c, self.epilogue, c_type)
        return te.create_prim_func([a, b, *operands, c])

    def _described(self) -> PrimFunc:
        """A product that has a workload of its own, with the sums in C."""
        a_type, b_type, _ = self.types
        extents = self.m, self.n, self.k
        experts = self.experts, self.tokens
        if self.weights is not None:
            return quantised_matmul(
                *extents, self.weights, a_type, self.sum_type, self.group, *experts
            )
        if self.form == SCALED:
            return scaled_matmul(*extents, a_type, b_type, batch=self.batch)
        if self.form == BLOCKS:
            return block_scaled_matmul(
                *extents, a_type, b_type, blocks.BLOCK, "rows", self.batch, *experts
            )
        if self.form == SPARSE:
            return sparse_matmul(*extents, a_type, b_type, self.b_transposed, self.batch)
        assert self.experts is not None
        return grouped_matmul(*extents, self.experts, a_type, self.sum_type, b_type, self.tokens)


def _only_form(intrinsic: Intrinsic) -> str:
    """The form of an instruction that has but one."""
    if intrinsic.sparse:
        return SPARSE
    narrow = min(intrinsic.a.type.bits, intrinsic.b.type.bits) < 8
    return SCALED if intrinsic.scales and narrow else PLAIN


def _bits(dtype: str) -> int:
    return ELEMENT_TYPES[dtype].bits if dtype in ELEMENT_TYPES else 8
