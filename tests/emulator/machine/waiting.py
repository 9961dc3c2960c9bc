"""Kernels whose waves wait in loops for what others do, in the forms that are in use.

Each works on an array of words, which `s[4:5]` points at, and has the number of its workgroup in
`s2`. The first words are flags, counters and locks, and results come behind.
"""

from __future__ import annotations

from tests.emulator.waves import kernel

_START = """
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_mov_b32_e32 v1, 0
	v_mov_b32_e32 v8, 1
	s_mov_b32 s17, 0
	s_waitcnt lgkmcnt(0)
"""
_ONE_LANE = "	s_mov_b64 exec, 1\n"


def waits(word: str, until: str, label: str, sleep: bool = False) -> str:
    """A loop that loads the word at a byte offset in a register until it is a scalar register's
    value or more."""
    return f"""
.L{label}:
{"	s_sleep 1" if sleep else ""}
	global_load_dword v3, {word}, s[4:5] sc1
	s_waitcnt vmcnt(0)
	v_readfirstlane_b32 s16, v3
	s_cmp_lt_u32 s16, {until}
	s_cbranch_scc1 .L{label}
	buffer_inv sc1
"""


def publishes(word: str, value: str) -> str:
    """A store behind all that was stored before."""
    return f"""
	buffer_wbl2 sc1
	s_waitcnt vmcnt(0)
	global_store_dword {word}, {value}, s[4:5] sc1
"""


def flag(producer: int, consumer_first: bool, sleep: bool = False, is_set: bool = True) -> str:
    """One workgroup writes 7 to word 1 and sets the flag, word 0; the others wait for it and copy
    word 1, plus their number, behind it."""
    setting = publishes("v1", "v8") if is_set else ""
    produce = f"	v_mov_b32_e32 v2, 7\n	global_store_dword v1, v2, s[4:5] offset:4\n{setting}"
    consume = f"""{waits("v1", "1", "WAIT", sleep)}
	global_load_dword v4, v1, s[4:5] offset:4
	s_waitcnt vmcnt(0)
	v_add_u32_e32 v4, s2, v4
	s_lshl_b32 s8, s2, 2
	v_mov_b32_e32 v5, s8
	global_store_dword v5, v4, s[4:5] offset:8
"""
    first, second = (consume, produce) if consumer_first else (produce, consume)
    branch = "s_cbranch_scc1" if consumer_first else "s_cbranch_scc0"
    return kernel(
        f"{_START}{_ONE_LANE}	s_cmp_eq_u32 s2, {producer}\n	{branch} .LSECOND\n{first}"
        f"	s_endpgm\n.LSECOND:\n{second}"
    )


def chain(groups: int, backward: bool) -> str:
    """A sum over workgroups: each waits for the sum of the one before it, adds its number in the
    chain plus 1, and passes it on. Backward, the last workgroup is the first of the chain."""
    number = f"	s_sub_u32 s9, {groups - 1}, s2\n" if backward else "	s_mov_b32 s9, s2\n"
    return kernel(
        f"""{_START}{_ONE_LANE}{number}
	s_lshl_b32 s8, s9, 2
	v_mov_b32_e32 v5, s8
	v_mov_b32_e32 v4, s9
	v_add_u32_e32 v4, 1, v4
	s_cmp_eq_u32 s9, 0
	s_cbranch_scc1 .LFIRST
	v_add_u32_e32 v6, -4, v5
{waits("v6", "1", "WAIT")}
	v_add_u32_e32 v4, v3, v4
.LFIRST:
{publishes("v5", "v4")}"""
    )


def relay() -> str:
    """The third workgroup reads what the first one wrote, which it knows of from the second one."""
    return kernel(
        f"""{_START}{_ONE_LANE}
	v_mov_b32_e32 v6, 4
	s_cmp_eq_u32 s2, 1
	s_cbranch_scc1 .LSECOND
	s_cmp_eq_u32 s2, 2
	s_cbranch_scc1 .LTHIRD
	v_mov_b32_e32 v2, 7
	global_store_dword v1, v2, s[4:5] offset:8
{publishes("v1", "v8")}
	s_endpgm
.LSECOND:
{waits("v1", "1", "FIRST")}
{publishes("v6", "v8")}
	s_endpgm
.LTHIRD:
{waits("v6", "1", "NEXT")}
	global_load_dword v4, v1, s[4:5] offset:8
	s_waitcnt vmcnt(0)
	global_store_dword v1, v4, s[4:5] offset:12"""
    )


def for_others(early: bool = False) -> str:
    """Wave 1 of a workgroup writes a word, for which wave 0 sets a flag; wave 0 of another one
    waits for it, and wave 1 reads the word. With `early`, both write back before the barrier."""
    write_back = "	buffer_wbl2 sc1\n	s_waitcnt vmcnt(0)\n"
    sets = publishes("v1", "v8")
    before = write_back if early else ""
    return kernel(
        f"""{_START}
	v_readfirstlane_b32 s6, v0
	s_mov_b64 exec, 1
	s_cmp_eq_u32 s2, 0
	s_cbranch_scc1 .LCONSUMER
	s_cmp_eq_u32 s6, 0
	s_cbranch_scc1 .LWRITTEN
	v_mov_b32_e32 v2, 7
	global_store_dword v1, v2, s[4:5] offset:8
.LWRITTEN:
{before}	s_barrier
	s_cmp_eq_u32 s6, 0
	s_cbranch_scc0 .LEND
{sets.replace(write_back, "") if early else sets}
	s_endpgm
.LCONSUMER:
	s_cmp_eq_u32 s6, 0
	s_cbranch_scc0 .LSEEN
{waits("v1", "1", "WAIT")}
.LSEEN:
	s_barrier
	s_cmp_eq_u32 s6, 0
	s_cbranch_scc1 .LEND
	global_load_dword v4, v1, s[4:5] offset:8
	s_waitcnt vmcnt(0)
	global_store_dword v1, v4, s[4:5] offset:12
.LEND:"""
    )


def fix_up(waiting_first: bool) -> str:
    """Stream-K: of each two workgroups one stores a partial sum of 64 lanes and sets a flag, and
    the other waits for it and adds its own."""
    parity = "0" if waiting_first else "1"
    return kernel(
        f"""{_START}
	s_lshr_b32 s9, s2, 1
	s_and_b32 s10, s2, 1
	s_lshl_b32 s8, s9, 2
	v_mov_b32_e32 v5, s8
	s_lshl_b32 s11, s9, 8
	s_addk_i32 s11, 0x100
	v_lshl_add_u32 v6, v0, 2, s11
	s_cmp_eq_u32 s10, {parity}
	s_cbranch_scc1 .LWAITS
	v_lshlrev_b32_e32 v2, 4, v0
	global_store_dword v6, v2, s[4:5]
{publishes("v5", "v8")}
	s_endpgm
.LWAITS:
{waits("v5", "1", "WAIT")}
	global_load_dword v4, v6, s[4:5]
	s_waitcnt vmcnt(0)
	v_add_u32_e32 v4, s9, v4
	global_store_dword v6, v4, s[4:5]"""
    )


def grid_barrier(groups: int) -> str:
    """All workgroups write their number, meet at a counter, and read that of the next one."""
    return kernel(
        f"""{_START}{_ONE_LANE}
	s_lshl_b32 s8, s2, 2
	v_mov_b32_e32 v5, s8
	v_mov_b32_e32 v2, s2
	global_store_dword v5, v2, s[4:5] offset:4
	buffer_wbl2 sc1
	s_waitcnt vmcnt(0)
	global_atomic_add v1, v8, s[4:5] sc1
	s_movk_i32 s12, {groups}
{waits("v1", "s12", "WAIT")}
	s_add_u32 s9, s2, 1
	s_cmp_eq_u32 s9, s12
	s_cselect_b32 s9, 0, s9
	s_lshl_b32 s9, s9, 2
	v_mov_b32_e32 v6, s9
	global_load_dword v4, v6, s[4:5] offset:4
	s_waitcnt vmcnt(0)
	global_store_dword v5, v4, s[4:5] offset:{4 + 4 * groups}"""
    )


_ADDS_2 = """
	global_load_dword v4, v1, s[4:5] offset:8
	s_waitcnt vmcnt(0)
	v_add_u32_e32 v4, 2, v4
	global_store_dword v1, v4, s[4:5] offset:8
"""


def ticket_lock() -> str:
    """Each workgroup takes a ticket of word 0, waits until word 1 serves it, and adds 2 to word 2
    by a load and a store."""
    return kernel(
        f"""{_START}{_ONE_LANE}
	global_atomic_add v2, v1, v8, s[4:5] sc0
	s_waitcnt vmcnt(0)
	v_readfirstlane_b32 s12, v2
	v_mov_b32_e32 v6, 4
{waits("v6", "s12", "WAIT")}
{_ADDS_2}
	s_add_u32 s12, s12, 1
	v_mov_b32_e32 v2, s12
{publishes("v6", "v2")}"""
    )


def mutex(lanes: int = 1, unlocks: bool = True) -> str:
    """A lock by compare and swap in word 0, around an addition of 2 to word 2.

    Lanes of one wave that take it in turns wait for one another: the one that has it, for the end
    of a loop that the others do not leave.
    """
    unlock = publishes("v1", "v9") if unlocks else ""
    return kernel(
        f"""{_START}
	s_mov_b64 exec, {(1 << lanes) - 1:#x}
	v_mov_b32_e32 v9, 0
	s_mov_b64 s[8:9], 0
.LTRY:
	global_atomic_cmpswap v2, v1, v[8:9], s[4:5] sc0
	s_waitcnt vmcnt(0)
	v_cmp_eq_u32_e32 vcc, 0, v2
	s_or_b64 s[8:9], vcc, s[8:9]
	s_andn2_b64 exec, exec, s[8:9]
	s_cbranch_execnz .LTRY
	s_mov_b64 exec, {(1 << lanes) - 1:#x}
	buffer_inv sc1
{_ADDS_2}
{unlock}"""
    )


def queue(tiles: int) -> str:
    """Persistent workgroups take tiles from a counter, and write the tile's number to its word."""
    return kernel(
        f"""{_START}{_ONE_LANE}
	s_movk_i32 s12, {tiles}
.LNEXT:
	global_atomic_add v2, v1, v8, s[4:5] sc0
	s_waitcnt vmcnt(0)
	v_readfirstlane_b32 s9, v2
	s_cmp_ge_u32 s9, s12
	s_cbranch_scc1 .LDONE
	v_lshlrev_b32_e32 v5, 2, v2
	global_store_dword v5, v2, s[4:5] offset:4
	s_branch .LNEXT
.LDONE:"""
    )


def in_lds(consumer_first: bool, is_set: bool = True) -> str:
    """Wave 0 writes words to the LDS and sets a flag; wave 1 waits for it, and stores them."""
    setting = "	ds_write_b32 v1, v8 offset:256\n	s_waitcnt lgkmcnt(0)\n" if is_set else ""
    produce = f"""
	v_mul_u32_u24_e32 v2, 3, v0
	ds_write_b32 v7, v2
	s_waitcnt lgkmcnt(0)
{setting}"""
    consume = """
.LWAIT:
	ds_read_b32 v3, v1 offset:256
	s_waitcnt lgkmcnt(0)
	v_readfirstlane_b32 s16, v3
	s_cmp_eq_u32 s16, 0
	s_cbranch_scc1 .LWAIT
	ds_read_b32 v4, v7
	s_waitcnt lgkmcnt(0)
	global_store_dword v7, v4, s[4:5]
"""
    first, second = (consume, produce) if consumer_first else (produce, consume)
    branch = "s_cbranch_scc0" if consumer_first else "s_cbranch_scc1"
    return kernel(
        f"""{_START}
	v_readfirstlane_b32 s6, v0
	v_and_b32_e32 v7, 63, v0
	v_lshlrev_b32_e32 v7, 2, v7
	s_cmp_lg_u32 s6, 0
	s_cbranch_scc1 .LREADY
	ds_write_b32 v1, v1 offset:256
	s_waitcnt lgkmcnt(0)
.LREADY:
	s_barrier
	s_cmp_lg_u32 s6, 0
	{branch} .LSECOND
{first}
	s_endpgm
.LSECOND:
{second}""",
        lds=512,
    )


def counter_in_lds(waves: int) -> str:
    """Waves write words to the LDS, meet at a counter there, and store what the next one wrote."""
    return kernel(
        f"""{_START}
	v_lshlrev_b32_e32 v7, 2, v0
	v_readfirstlane_b32 s6, v0
	s_cmp_lg_u32 s6, 0
	s_cbranch_scc1 .LREADY
	ds_write_b32 v1, v1 offset:{256 * waves}
	s_waitcnt lgkmcnt(0)
.LREADY:
	s_barrier
	v_mul_u32_u24_e32 v2, 3, v0
	ds_write_b32 v7, v2
	s_mov_b64 s[8:9], exec
	s_mov_b64 exec, 1
	s_waitcnt lgkmcnt(0)
	ds_add_u32 v1, v8 offset:{256 * waves}
	s_mov_b64 exec, s[8:9]
.LWAIT:
	ds_read_b32 v3, v1 offset:{256 * waves}
	s_waitcnt lgkmcnt(0)
	v_readfirstlane_b32 s16, v3
	s_cmp_lt_u32 s16, {waves}
	s_cbranch_scc1 .LWAIT
	s_add_u32 s6, s6, 64
	s_cmp_eq_u32 s6, {64 * waves}
	s_cselect_b32 s6, 0, s6
	s_lshl_b32 s6, s6, 2
	v_and_b32_e32 v6, 63, v0
	v_lshl_add_u32 v6, v6, 2, s6
	ds_read_b32 v4, v6
	s_waitcnt lgkmcnt(0)
	global_store_dword v7, v4, s[4:5]""",
        lds=256 * waves + 16,
    )


def behind_a_barrier(producer: int) -> str:
    """Of each workgroup wave 0 waits for a flag that one workgroup sets behind a barrier of its
    own, and the others wait for wave 0 at theirs; then all write the workgroup's number plus 1."""
    return kernel(
        f"""{_START}
	v_readfirstlane_b32 s6, v0
	s_cmp_lg_u32 s6, 0
	s_cbranch_scc1 .LREADY
	s_cmp_eq_u32 s2, {producer}
	s_cbranch_scc1 .LREADY
{waits("v1", "1", "WAIT")}
.LREADY:
	s_barrier
	s_lshl_b32 s8, s2, 9
	v_lshl_add_u32 v5, v0, 2, s8
	s_add_u32 s9, s2, 1
	v_mov_b32_e32 v4, s9
	global_store_dword v5, v4, s[4:5] offset:4
	s_cmp_eq_u32 s2, {producer}
	s_cbranch_scc0 .LEND
{publishes("v1", "v8")}
.LEND:"""
    )


def two_locks() -> str:
    """Each of two workgroups sets its word, and waits for the other to clear its own."""
    return kernel(
        f"""{_START}{_ONE_LANE}
	s_lshl_b32 s8, s2, 2
	s_xor_b32 s9, s8, 4
	v_mov_b32_e32 v5, s8
	v_mov_b32_e32 v6, s9
	v_mov_b32_e32 v2, -1
{waits("v6", "1", "WAIT")}
{publishes("v5", "v8")}"""
    )


def counting(producer: int) -> str:
    """A consumer that counts how often it has looked, so that it is never in the same state."""
    text = flag(producer, consumer_first=True)
    text = text.replace(
        "	s_waitcnt lgkmcnt(0)\n", "	s_mov_b32 s17, 0\n	s_waitcnt lgkmcnt(0)\n", 1
    )
    return text.replace(".LWAIT:\n", ".LWAIT:\n	s_add_u32 s17, s17, 1\n")


def forgetting(producer: int) -> str:
    """A consumer that keeps of what it has seen only whether to go on, in the condition code."""
    text = flag(producer, consumer_first=True)
    text = text.replace(".LWAIT:\n", ".LWAIT:\n	s_cbranch_scc0 .LSEEN\n", 1)
    looks_again = """	s_mov_b32 s16, 0
	v_mov_b32_e32 v3, 0
	s_branch .LWAIT
.LSEEN:
"""
    return text.replace("	s_cbranch_scc1 .LWAIT\n", looks_again).replace(
        "	s_cbranch_scc1 .LSECOND\n", "	s_cbranch_scc1 .LSECOND\n	s_cmp_eq_u32 s2, s2\n"
    )
