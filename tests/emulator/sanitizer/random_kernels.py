"""Random kernels that go wrong in many ways: races, reads of what nobody wrote, missing waits."""

from __future__ import annotations

import random

from tests.emulator.waves import kernel

LDS_BYTES = 2048
WORDS = 4096
"""Of each of the two arrays that they take."""

_BEGIN = """\
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	v_xor_b32_e32 v2, 1, v0
	v_lshlrev_b32_e32 v2, 2, v2
	v_add_u32_e32 v3, 64, v0
	v_and_b32_e32 v3, 0x7f, v3
	v_lshlrev_b32_e32 v3, 2, v3
	v_lshlrev_b32_e32 v4, 4, v0
	v_mov_b32_e32 v5, 16
	v_and_b32_e32 v6, 0x3f, v0
	v_lshlrev_b32_e32 v6, 3, v6
	s_lshl_b32 s8, s2, 10
	v_add_u32_e32 v7, s8, v1
	v_add_u32_e32 v8, s8, v4
	v_readfirstlane_b32 s9, v0
	s_waitcnt lgkmcnt(0)
	s_mov_b32 s12, s6
	s_and_b32 s13, s7, 0xffff
	s_movk_i32 s14, 0x1000
	s_mov_b32 s15, 0x27000
	s_mov_b32 s16, s4
	s_and_b32 s17, s5, 0xffff
	s_movk_i32 s18, 0x3f00
	s_mov_b32 s19, 0x27000
	s_movk_i32 s20, 0x10
	s_mov_b64 s[24:25], exec
	v_mov_b32_e32 v9, 0
"""
_LDS_ADDRESSES = ["v1"] * 4 + ["v2", "v3", "v3", "v4", "v4", "v5", "v6"]
_KEEPS = "dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_0"
_ADDRESSES = ["v7"] * 4 + ["v8"] * 4 + ["v1", "v4", "v5"]


class _Writer:
    """Writes the lines of one kernel; a `careful` one makes fewer mistakes."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._care = self._random.choice([0.4, 0.8, 0.95, 1.0])
        self._labels = 0
        self.lines: list[str] = []

    def _is_careful(self) -> bool:
        return self._random.random() < self._care

    def _pick(self, of: list[str]) -> str:
        return of[0] if of[0] != of[-1] and self._is_careful() else self._random.choice(of)

    def _register(self, count: int = 1) -> str:
        first = self._random.randrange(10, 30 - count, 1 if count == 1 else 2)
        return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"

    def _say(self, text: str) -> None:
        self.lines.append(f"\t{text}")

    def _wait(self) -> None:
        if self._is_careful():
            self._say("s_waitcnt vmcnt(0) lgkmcnt(0)")
        elif self._random.random() < 0.5:
            counter = self._random.choice(["vmcnt", "lgkmcnt"])
            self._say(f"s_waitcnt {counter}({self._random.randrange(4)})")

    def _initialise(self) -> None:
        for index in range(10, 30):
            if self._random.random() < 0.3 + 0.7 * self._care:
                self._say(f"v_mov_b32_e32 v{index}, {self._random.choice(['v0', '1.0', 'v1'])}")
        if self._is_careful():
            for offset in range(0, 2048, 512):
                self._say(f"ds_write_b32 v1, v9 offset:{offset}")
            self._say("s_waitcnt lgkmcnt(0)")
            self._say("s_barrier")
        if self._is_careful():
            self._say("s_cmp_lg_u32 s2, 0")

    def _lds(self) -> None:
        writes, address = self._random.random() < 0.5, self._pick(_LDS_ADDRESSES)
        offset = self._random.choice(
            [0, 0, 0, 512, 1024, 16, 4] + [2, 1] * (not self._is_careful())
        )
        form = self._random.choice(["b32", "b32", "b64", "b128", "b96", "b16", "b8", "two", "d16"])
        words = {"b64": 2, "b96": 3, "b128": 4}.get(form, 1)
        if form == "two":
            places = f"offset0:{offset // 4} offset1:{self._random.randrange(140)}"
            if writes:
                self._say(
                    f"ds_write2_b32 {address}, {self._register()}, {self._register()} {places}"
                )
            else:
                self._say(f"ds_read2_b32 {self._register(2)}, {address} {places}")
        elif writes:
            kind = "b16_d16_hi" if form == "d16" else form
            self._say(f"ds_write_{kind} {address}, {self._register(words)} offset:{offset}")
        else:
            kind = {"b16": "u16", "b8": "i8", "d16": "u16_d16_hi"}.get(form, form)
            self._say(f"ds_read_{kind} {self._register(words)}, {address} offset:{offset}")

    def _memory(self) -> None:
        writes, address = self._random.random() < 0.4, self._pick(_ADDRESSES)
        words = self._random.choice([1, 1, 2, 4])
        suffix = "" if words == 1 else f"x{words}"
        base = (
            "s[6:7]" if writes and self._is_careful() else self._random.choice(["s[4:5]", "s[6:7]"])
        )
        offset = self._random.choice([0, 0, 0, 256, 1024] + [2, 12] * (not self._is_careful()))
        moved = self._register(words)
        if self._random.random() < 0.3:
            descriptor = "s[12:15]" if base == "s[6:7]" else "s[16:19]"
            scalar = self._random.choice(["0", "0", "s20"])
            kind = f"buffer_{'store' if writes else 'load'}_dword{suffix}"
            self._say(f"{kind} {moved}, {address}, {descriptor}, {scalar} offen offset:{offset}")
        elif writes:
            self._say(f"global_store_dword{suffix} {address}, {moved}, {base} offset:{offset}")
        else:
            kind = (
                self._random.choice(["dword"] * 4 + ["ushort", "short_d16"]) if words == 1 else ""
            )
            kind = kind or f"dword{suffix}"
            self._say(f"global_load_{kind} {moved}, {address}, {base} offset:{offset}")

    def _odd(self) -> None:
        r = self._register
        self._say(self._random.choice([
            f"ds_add_u32 v1, {r()} offset:1536", f"ds_add_rtn_u32 {r()}, v5, {r()} offset:1536",
            f"global_atomic_add v5, {r()}, s[6:7] offset:2048", "s_load_dword s21, s[4:5], 0x10",
            f"global_load_dword {r()}, v7, s[4:5] sc1",
            "s_load_dword s22, s[4:5], 0x6", f"ds_add_u32 v3, {r()} offset:1024",
            "s_mov_b32 m0, 0x200\n\ts_nop 4\n\tbuffer_load_dword v1, s[16:19], 0 offen lds",
            "s_mov_b64 exec, s[24:25]", "s_mov_b64 exec, -1", "buffer_wbl2 sc1", "buffer_inv sc1",
            *(f"global_store_dword v{place}, {r()}, s[6:7] offset:12 {flag}"
              for place in (5, 9) for flag in ("sc0", "sc1")),
            *(f"global_load_dword {r()}, v{place}, s[6:7] offset:12 {flag}"
              for place in (5, 9) for flag in ("sc0", "sc1")),
        ]))  # fmt: skip

    def _compute(self) -> None:
        r = self._register
        self._say(self._random.choice([
            f"v_add_u32_e32 {r()}, {r()}, {r()}", f"v_fma_f32 {r()}, {r()}, {r()}, {r()}",
            f"v_mov_b32_e32 {r()}, {r()}", f"v_and_b32_e32 {r()}, 0xffff, {r()}",
            f"v_cndmask_b32_e64 {r()}, {r()}, {r()}, s[24:25]",
            f"v_lshlrev_b32_e32 {r()}, 3, {r()}",
            f"v_mov_b32_sdwa {r()}, {r()} {_KEEPS}",
            f"v_cmp_lt_u32_e64 s[24:25], {r()}, {r()}", f"v_pk_add_f16 {r()}, {r()}, {r()}",
            f"v_add_co_u32_e32 {r()}, vcc, {r()}, {r()}", "s_add_u32 s20, s20, 0",
            "s_addc_u32 s23, s20, 0", f"v_readfirstlane_b32 s21, {r()}", "s_nop 3",
            f"ds_bpermute_b32 {r()}, v1, {r()}",
        ]))  # fmt: skip
        if self._is_careful():
            self._say("s_nop 4")

    def _barrier(self) -> None:
        self._wait()
        if self._is_careful():
            self._say("s_barrier")

    def _block(self, depth: int) -> None:
        for _ in range(self._random.randrange(2, 9)):
            choice = self._random.random()
            if choice < 0.3:
                self._lds()
                self._wait()
            elif choice < 0.5:
                self._memory()
                self._wait()
            elif choice < 0.56:
                self._odd()
                self._wait()
            elif choice < 0.78 or depth > 2:
                self._compute()
            elif choice < 0.85 and depth == 0:
                self._barrier()
            else:
                self._random.choice([self._region, self._loop, self._branch])(depth + 1)

    def _label(self) -> str:
        self._labels += 1
        return f"label{self._labels}"

    def _region(self, depth: int) -> None:
        saved = f"s[{26 + 2 * depth}:{27 + 2 * depth}]"
        end, bound = self._label(), self._random.choice([32, 48, 64, 100, 7])
        self._say(f"v_cmp_gt_u32_e32 vcc, {bound}, v0")
        self._say("s_nop 4")
        self._say(f"s_and_saveexec_b64 {saved}, vcc")
        if self._random.random() < 0.7:
            self._say(f"s_cbranch_execz {end}")
        self._block(depth)
        self.lines.append(f"{end}:")
        self._say(f"s_or_b64 exec, exec, {saved}")

    def _loop(self, depth: int) -> None:
        counter, begin = f"s{40 + depth}", self._label()
        self._say(f"s_movk_i32 {counter}, 0x{self._random.randrange(2, 5)}")
        self.lines.append(f"{begin}:")
        self._block(depth)
        self._say(f"s_sub_u32 {counter}, {counter}, 1")
        self._say(f"s_cmp_lg_u32 {counter}, 0")
        self._say(f"s_cbranch_scc1 {begin}")

    def _branch(self, depth: int) -> None:
        end = self._label()
        self._say(self._random.choice(["s_cmp_lt_u32 s9, 64", "s_cmp_lg_u32 s2, 1"]))
        self._say(f"s_cbranch_scc1 {end}")
        self._block(depth)
        self.lines.append(f"{end}:")

    def write(self) -> str:
        """The code."""
        self._initialise()
        for _ in range(self._random.randrange(1, 4)):
            self._block(0)
            self._barrier()
        return _BEGIN + "\n".join(self.lines)


def random_kernel(seed: int) -> str:
    """The text of a kernel that takes two arrays of WORDS words, 128 threads of a workgroup."""
    text = kernel(_Writer(seed).write(), arguments=2, lds=LDS_BYTES)
    return text.replace(
        "		.amdhsa_next_free_vgpr",
        "		.amdhsa_next_free_sgpr 60\n		.amdhsa_next_free_vgpr",
    )
