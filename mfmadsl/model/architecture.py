"""What a chip is: one record, from which everything takes what it needs to know of a chip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mfmadsl.error import ArgumentError
from mfmadsl.model.wait import WaitCounter

NumberFormat = Literal["xf32", "fnuz", "ocp", "mx", "index"]


@dataclass(frozen=True)
class Architecture:
    """One chip. Sizes are in bytes and times in clock cycles, unless said otherwise.

    The letters in brackets are the sources:

    A: the CDNA ISA manuals (MI100, MI200, MI300, CDNA4); sections are those of CDNA3's.
    B: LLVM 22: AMDGPU subtarget and scheduling model, and "User Guide for AMDGPU Backend".
    C: AMD, "Performance model" of ROCm Compute Profiler: LDS, vector L1 cache, pipelines.
    D: AMD, "CDNA", "CDNA 2", "CDNA 3" and "CDNA 4 Architecture" white papers.
    E: AMD's analytical model of MI300X: LDS 48, L1 hit 144, L2 hit 254 cycles.
    F: HipKittens (arXiv 2511.08083), measured lane phases of LDS instructions on MI355X.
    G: AMD, "Avoiding LDS Bank Conflicts on AMD GPUs" (ROCm blogs, 2025), for MI300X.
    Q: AMD, ROCm/gfx950-gluon-tutorials, docs/lds_throughput.md, tcp_bound_tile_model.md and
       kernels/gemm/gfx942: traces of MI355X and MI300X. Of other chips no figure is known: they are
       taken to have the same.
    H: MMA-Sim (arXiv 2511.10909), what matrix cores of MI100, MI200 and MI300 compute.

    What it is called, and how waves run:

    - `name`: LLVM's processor name (B); `family`: the name of the ISA manual.
    - `elf_machine`: the number of the chip in the header of code objects (B, EF_AMDGPU_MACH).
    - `instructions_of`: the chip whose matrix instructions it has, with their cycles: what the
      library says of that one holds of this one, too, but where it says it of this one. Empty
      where the library says all of it by itself.
    - `wave_size`: lanes of a wave (A, section 2.1).
    - `max_threads`: the most threads of a workgroup (B, `.max_flat_workgroup_size`).
    - `simds`: SIMDs of a compute unit (A, section 2).
    - `waves_per_simd`: the most waves that a SIMD holds (B).
    - `groups_with_barriers`: the most workgroups of several waves, each of which takes a barrier,
      that a compute unit holds (B, getMaxWorkGroupsPerCU).
    - `compute_units`: those of the largest product (of one die, where each is a device) (D).
    - `dies`: those with an L2 each (D).
    - `issue_slot`: cycles between two issue slots of a SIMD: a wave issues once in so many at
      most (A, C).
    - `wide_slots`: issue slots that a vector instruction on 64 bits takes: 1 where the chip
      multiplies as many doubles as floats in a cycle, 64 a compute unit (D; B: full-rate-64-ops).
    - `transcendental_slots`: issue slots of the functions of 32 and 16 bits that the vector ALU
      approximates: exp, log, rcp, rsq, sqrt, sin and cos (C; D: CDNA 4 has twice the rate).
    - `packs_coordinates`: a wave starts with the thread's coordinates in ten bits each of v0, and
      not with one of them in each of v0 to v2 (B, "Initial Kernel Execution State").
    - `architected_scratch`: the hardware itself knows where a wave's scratch memory lies, and no
      scalar register tells it (B, architected-flat-scratch).

    Registers:

    - `registers`: 32-bit vector registers a lane of a wave that has a SIMD to itself, those of
      accumulation among them (A, section 3.6.4).
    - `simd_registers`: those a lane of a SIMD, for all of its waves: of both kinds together, or of
      each where `separate_files` (B).
    - `register_granule`: a wave is given a multiple of so many vector registers (B).
    - `separate_files`: accumulation registers are a file of their own, which only matrix
      instructions and moves reach (A, section 3.6; B).
    - `even_tuples`: several vector registers begin at an even one (B, requires-aligned-vgprs).
    - `accumulation_granule`: where both kinds share a file, accumulation registers begin at a
      multiple of this (B, `.amdhsa_accum_offset`).
    - `waves_by_scalars`: (the most scalar registers, waves of a SIMD that they leave room for), the
      last of them for any more (B, getOccupancyWithNumSGPRs).

    The LDS:

    - `lds_bytes`: the most bytes of a workgroup, and all of a compute unit's (A, D).
    - `lds_granule`: a workgroup is given a multiple of so many bytes (B, COMPUTE_PGM_RSRC2).
    - `lds_latency`: cycles of a read beyond those in which the LDS is busy with it: 48 and the
      transfer of the data itself (E).
    - `lds_banks`: of four bytes, each read or written once a cycle (A, section 11.1; G).
    - `lds_read_banks`: those that one cycle's reads spread over (D, F, G).
    - `lds_bytes_per_cycle`: what goes in or out in a cycle (A, section 11).
    - `lds_queue`: instructions that wait for the LDS, of two SIMDs together (Q).
    - `lds_store_bytes`: what a wave sends to the LDS in a cycle when it stores, ahead of which it
      does nothing else: 16 cycles for 16 bytes a lane (Q).

    Memory:

    - `line_bytes`: a cache line of the vector L1 cache (C).
    - `l1_bytes`: all of the vector L1 cache of a compute unit (D).
    - `l1_bytes_per_cycle`, `l1_latency`: of a hit in the vector L1 cache (C; E).
    - `memory_queue`: vector memory instructions of a compute unit that wait for the vector L1,
      which takes up as many as it has lines for what they fetch (Q).
    - `l2_bytes_per_cycle`: from the L2 to a compute unit (D); `l2_latency`: of a hit in it (E).
    - `scalar_latency`: of a hit in the scalar cache (B, E).
    - `wide_loads_to_lds`: loads of 16 bytes a lane go into the LDS, past the registers (B).
    - `transposing_reads`: reads of the LDS exchange elements between lanes (A, CDNA4, section 11).
    - `swaps_halves`: V_PERMLANE16_SWAP and V_PERMLANE32_SWAP exchange values between the halves of
      lanes (A, CDNA4, section 6).
    - `wait_counters`: memory instructions under way, and where `s_waitcnt` says how many may be
      left (A, section 4.4).

    Vector ALUs:

    - `rounds_to_bfloat`: an instruction rounds floats to bfloat16 (A, CDNA4: V_CVT_PK_BF16_F32).

    Matrix cores:

    - `formats`: the number formats that they read, of those that not all do: `xf32`; `fnuz` or
      `ocp`, which of the two eight-bit floats are; `mx`, elements of six and four bits and scales;
      `index`, the places of what a sparse A stores, where there is structured sparsity (A,
      section 7).
    - `negates`: the bits of blgp negate the operands of f64 instructions (A, section 7.1).
    - `flushes_halves`: denormal halves and bfloats are read as 0 (H).
    """

    name: str
    family: str
    elf_machine: int
    instructions_of: str
    wave_size: int
    max_threads: int
    simds: int
    waves_per_simd: int
    groups_with_barriers: int
    compute_units: int
    dies: int
    issue_slot: int
    wide_slots: int
    transcendental_slots: int
    packs_coordinates: bool
    architected_scratch: bool
    registers: int
    simd_registers: int
    register_granule: int
    separate_files: bool
    even_tuples: bool
    accumulation_granule: int
    waves_by_scalars: tuple[tuple[int, int], ...]
    lds_bytes: int
    lds_granule: int
    lds_latency: int
    lds_banks: int
    lds_read_banks: int
    lds_bytes_per_cycle: int
    lds_queue: int
    lds_store_bytes: int
    line_bytes: int
    l1_bytes: int
    l1_bytes_per_cycle: int
    l1_latency: int
    memory_queue: int
    l2_bytes_per_cycle: int
    l2_latency: int
    scalar_latency: int
    wide_loads_to_lds: bool
    transposing_reads: bool
    swaps_halves: bool
    wait_counters: tuple[WaitCounter, ...]
    rounds_to_bfloat: bool
    formats: tuple[NumberFormat, ...]
    negates: bool
    flushes_halves: bool

    def granted(self, vector: int) -> int:
        """The vector registers a lane that a wave is given if it asks for so many."""
        granule = self.register_granule
        return max(granule, -(-vector // granule) * granule)

    def waits(self, **counts: int) -> int:
        """The immediate of `s_waitcnt` that waits until no more than so many are left."""
        names = [counter.name for counter in self.wait_counters]
        if strange := [name for name in counts if name not in names]:
            raise ArgumentError(f"there is no counter `{strange[0]}`, but {', '.join(names)}")
        immediate = 0
        for counter in self.wait_counters:
            immediate |= counter.encoded(counts.get(counter.name, counter.largest))
        return immediate
