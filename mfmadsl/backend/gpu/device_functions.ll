; What kernels need and TIR cannot express. A kernel calls these by name (`T.call_extern`); they are linked
; into its module and inlined.
;
; A buffer starts `origin` bytes after `base` and ends `size` bytes after it. Past its end a load gives zeros and a
; store does nothing. `offset` is the lane's own; `step` is the same for all lanes. The check counts it by the ISA
; manuals (CDNA3, section 9.1.5) and leaves it out by LLVM (IntrinsicsAMDGPU.td): where it is not 0, the caller keeps
; the whole load inside.

target triple = "amdgcn-amd-amdhsa"

define ptr addrspace(8) @mfmadsl.buffer(ptr addrspace(1) %base, i64 %origin, i64 %size) alwaysinline {
  %start = getelementptr i8, ptr addrspace(1) %base, i64 %origin
  %left = sub i64 %size, %origin
  %positive = call i64 @llvm.smax.i64(i64 %left, i64 0)
  %records = call i64 @llvm.smin.i64(i64 %positive, i64 2147483644)
  ; Raw, 32-bit data: offsets count bytes.
  %buffer = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %start, i16 0, i64 %records, i32 159744)
  ret ptr addrspace(8) %buffer
}

define i32 @mfmadsl.buffer.load.i8(ptr addrspace(1) %base, i64 %origin, i64 %size, i32 %offset, i32 %step) alwaysinline {
  %buffer = call ptr addrspace(8) @mfmadsl.buffer(ptr addrspace(1) %base, i64 %origin, i64 %size)
  %loaded = call i8 @llvm.amdgcn.raw.ptr.buffer.load.i8(ptr addrspace(8) %buffer, i32 %offset, i32 %step, i32 0)
  %value = zext i8 %loaded to i32
  ret i32 %value
}

define i32 @mfmadsl.buffer.store.i8(i32 %value, ptr addrspace(1) %base, i64 %origin, i64 %size, i32 %offset) alwaysinline {
  %buffer = call ptr addrspace(8) @mfmadsl.buffer(ptr addrspace(1) %base, i64 %origin, i64 %size)
  %narrow = trunc i32 %value to i8
  call void @llvm.amdgcn.raw.ptr.buffer.store.i8(i8 %narrow, ptr addrspace(8) %buffer, i32 %offset, i32 0, i32 0)
  ret i32 0
}

define i32 @mfmadsl.buffer.load.i16(ptr addrspace(1) %base, i64 %origin, i64 %size, i32 %offset, i32 %step) alwaysinline {
  %buffer = call ptr addrspace(8) @mfmadsl.buffer(ptr addrspace(1) %base, i64 %origin, i64 %size)
  %loaded = call i16 @llvm.amdgcn.raw.ptr.buffer.load.i16(ptr addrspace(8) %buffer, i32 %offset, i32 %step, i32 0)
  %value = zext i16 %loaded to i32
  ret i32 %value
}

define i32 @mfmadsl.buffer.store.i16(i32 %value, ptr addrspace(1) %base, i64 %origin, i64 %size, i32 %offset) alwaysinline {
  %buffer = call ptr addrspace(8) @mfmadsl.buffer(ptr addrspace(1) %base, i64 %origin, i64 %size)
  %narrow = trunc i32 %value to i16
  call void @llvm.amdgcn.raw.ptr.buffer.store.i16(i16 %narrow, ptr addrspace(8) %buffer, i32 %offset, i32 0, i32 0)
  ret i32 0
}

define i32 @mfmadsl.buffer.load.i32(ptr addrspace(1) %base, i64 %origin, i64 %size, i32 %offset, i32 %step) alwaysinline {
  %buffer = call ptr addrspace(8) @mfmadsl.buffer(ptr addrspace(1) %base, i64 %origin, i64 %size)
  %value = call i32 @llvm.amdgcn.raw.ptr.buffer.load.i32(ptr addrspace(8) %buffer, i32 %offset, i32 %step, i32 0)
  ret i32 %value
}

define i32 @mfmadsl.buffer.store.i32(i32 %value, ptr addrspace(1) %base, i64 %origin, i64 %size, i32 %offset) alwaysinline {
  %buffer = call ptr addrspace(8) @mfmadsl.buffer(ptr addrspace(1) %base, i64 %origin, i64 %size)
  call void @llvm.amdgcn.raw.ptr.buffer.store.i32(i32 %value, ptr addrspace(8) %buffer, i32 %offset, i32 0, i32 0)
  ret i32 0
}

define <2 x i32> @mfmadsl.buffer.load.v2i32(ptr addrspace(1) %base, i64 %origin, i64 %size, i32 %offset, i32 %step) alwaysinline {
  %buffer = call ptr addrspace(8) @mfmadsl.buffer(ptr addrspace(1) %base, i64 %origin, i64 %size)
  %value = call <2 x i32> @llvm.amdgcn.raw.ptr.buffer.load.v2i32(ptr addrspace(8) %buffer, i32 %offset, i32 %step, i32 0)
  ret <2 x i32> %value
}

define i32 @mfmadsl.buffer.store.v2i32(<2 x i32> %value, ptr addrspace(1) %base, i64 %origin, i64 %size, i32 %offset) alwaysinline {
  %buffer = call ptr addrspace(8) @mfmadsl.buffer(ptr addrspace(1) %base, i64 %origin, i64 %size)
  call void @llvm.amdgcn.raw.ptr.buffer.store.v2i32(<2 x i32> %value, ptr addrspace(8) %buffer, i32 %offset, i32 0, i32 0)
  ret i32 0
}

define <4 x i32> @mfmadsl.buffer.load.v4i32(ptr addrspace(1) %base, i64 %origin, i64 %size, i32 %offset, i32 %step) alwaysinline {
  %buffer = call ptr addrspace(8) @mfmadsl.buffer(ptr addrspace(1) %base, i64 %origin, i64 %size)
  %value = call <4 x i32> @llvm.amdgcn.raw.ptr.buffer.load.v4i32(ptr addrspace(8) %buffer, i32 %offset, i32 %step, i32 0)
  ret <4 x i32> %value
}

define i32 @mfmadsl.buffer.store.v4i32(<4 x i32> %value, ptr addrspace(1) %base, i64 %origin, i64 %size, i32 %offset) alwaysinline {
  %buffer = call ptr addrspace(8) @mfmadsl.buffer(ptr addrspace(1) %base, i64 %origin, i64 %size)
  call void @llvm.amdgcn.raw.ptr.buffer.store.v4i32(<4 x i32> %value, ptr addrspace(8) %buffer, i32 %offset, i32 0, i32 0)
  ret i32 0
}

; The bits of element `index` of an array of narrow elements.

define i32 @mfmadsl.load.i8(ptr addrspace(1) %base, i64 %index) alwaysinline {
  %place = getelementptr i8, ptr addrspace(1) %base, i64 %index
  %loaded = load i8, ptr addrspace(1) %place
  %value = zext i8 %loaded to i32
  ret i32 %value
}

define i32 @mfmadsl.load.i16(ptr addrspace(1) %base, i64 %index) alwaysinline {
  %place = getelementptr i16, ptr addrspace(1) %base, i64 %index
  %loaded = load i16, ptr addrspace(1) %place
  %value = zext i16 %loaded to i32
  ret i32 %value
}

define i32 @mfmadsl.select(i1 %condition, i32 %value, i32 %other) alwaysinline {
  %chosen = select i1 %condition, i32 %value, i32 %other
  ret i32 %chosen
}

; Both halves of a word: the bits of a mask, and those of a number besides. Of numbers that it knows LLVM would take each half
; apart.

define i32 @mfmadsl.masked(i32 %word, i32 %mask, i32 %bits) alwaysinline {
  %some.mask = call i32 asm "", "=v,0"(i32 %mask) memory(none) nounwind
  %some.bits = call i32 asm "", "=s,0"(i32 %bits) memory(none) nounwind
  %masked = and i32 %word, %some.mask
  %both = or i32 %masked, %some.bits
  ret i32 %both
}

; The number of a field of a byte of a word, `shift` bits up, by a conversion of that byte; `masks` has the mask in each byte.
; Of a mask that it knows LLVM would take each field apart, and of numbers that were integers it would subtract those.

define float @mfmadsl.field(i32 %word, i32 %shift, i32 %masks) alwaysinline {
  %within = and i32 %shift, 7
  %moved = lshr i32 %word, %within
  %some.masks = call i32 asm "", "=s,0"(i32 %masks) memory(none) nounwind
  %fields = and i32 %moved, %some.masks
  %start = and i32 %shift, 24
  %down = lshr i32 %fields, %start
  %octet = and i32 %down, 255
  %number = uitofp i32 %octet to float
  %value = call float asm "", "=v,0"(float %number) memory(none) nounwind
  ret float %value
}

; The number of a nibble of a word, `shift` bits up, `less` another and `more`: made with that of the other nibble of its byte, as
; 1024 + low and 1024 + 16 * high.

define half @mfmadsl.nibble(i32 %word, i32 %shift, half %less, half %more) alwaysinline {
  %octet = lshr i32 %shift, 3
  %both.octets = mul i32 %octet, 65537
  %places = or i32 %both.octets, 201329664 ; 0x0C000C00: no other bytes
  %octets = call i32 @llvm.amdgcn.perm(i32 %word, i32 %word, i32 %places)
  %bits = call i32 @mfmadsl.masked(i32 %octets, i32 15728655, i32 1677747200) ; 0x00F0000F, 0x64006400
  %numbers = bitcast i32 %bits to <2 x half>
  %some = insertelement <2 x half> poison, half %less, i32 0
  %subtracted = shufflevector <2 x half> %some, <2 x half> poison, <2 x i32> zeroinitializer
  %one = insertelement <2 x half> poison, half %more, i32 0
  %added = shufflevector <2 x half> %one, <2 x half> poison, <2 x i32> zeroinitializer
  %known = fadd <2 x half> %added, <half 0xHE400, half 0xHD400> ; -1024, -64
  %rest = fsub <2 x half> %known, %subtracted
  %pair = call <2 x half> @llvm.fma.v2f16(<2 x half> %numbers, <2 x half> <half 0xH3C00, half 0xH2C00>, <2 x half> %rest)
  %nibble = lshr i32 %shift, 2
  %which = and i32 %nibble, 1
  %value = extractelement <2 x half> %pair, i32 %which
  ret half %value
}

; The number whose bits are those of a byte, with some others turned around.

define half @mfmadsl.octet(i32 %octet, i32 %turned) alwaysinline {
  %bits = xor i32 %octet, %turned
  %low = trunc i32 %bits to i16
  %number = bitcast i16 %low to half
  ret half %number
}

; A number with the other sign, which an instruction takes of what it reads: two of them subtracted are a sum.

define half @mfmadsl.opposite(half %value) alwaysinline {
  %negative = fneg half %value
  ret half %negative
}

define <2 x half> @mfmadsl.pair.opposite(<2 x half> %both) alwaysinline {
  %negative = fneg <2 x half> %both
  ret <2 x half> %negative
}

; What the next of 16 lanes has; of the last one `last`.

define i32 @mfmadsl.next.lane(i32 %last, i32 %value) alwaysinline {
  %other = call i32 @llvm.amdgcn.update.dpp.i32(i32 %last, i32 %value, i32 257, i32 15, i32 15, i1 false)
  ret i32 %other
}

; A value that is made of nothing, as far as the optimizer knows.

define i32 @mfmadsl.kept(i32 %value) alwaysinline {
  %same = call i32 asm "", "=v,0"(i32 %value)
  ret i32 %same
}

define <2 x float> @mfmadsl.pair.kept(<2 x float> %both) alwaysinline {
  %same = call <2 x float> asm "", "=v,0"(<2 x float> %both) memory(none) nounwind
  ret <2 x float> %same
}

; The same, where it stands: nothing moves or merges it.

define i32 @mfmadsl.renewed(i32 %value) alwaysinline {
  %same = call i32 asm sideeffect "", "=v,0"(i32 %value)
  ret i32 %same
}

; The same of two and of four words.

define <2 x i32> @mfmadsl.renewed.2(<2 x i32> %value) alwaysinline {
  %same = call <2 x i32> asm sideeffect "", "=v,0"(<2 x i32> %value)
  ret <2 x i32> %same
}

define <4 x i32> @mfmadsl.renewed.4(<4 x i32> %value) alwaysinline {
  %same = call <4 x i32> asm sideeffect "", "=v,0"(<4 x i32> %value)
  ret <4 x i32> %same
}

; A value that is there where this stands, and stays as it is.

define i32 @mfmadsl.there(i32 %value) alwaysinline {
  call void asm sideeffect "", "v"(i32 %value)
  ret i32 0
}

; Four numbers, computed where this stands.

define <4 x float> @mfmadsl.placed(<4 x float> %value) alwaysinline {
  %same = call <4 x float> asm sideeffect "", "=v,0"(<4 x float> %value)
  ret <4 x float> %same
}

; Zeros, made where this stands: two at once where the chip has an instruction for it.

define <2 x i32> @mfmadsl.zeros() alwaysinline {
  %made = call <2 x i32> asm sideeffect "", "=v,0"(<2 x i32> zeroinitializer)
  ret <2 x i32> %made
}

; Straight into the LDS: a lane's 16 bytes go 16 bytes times its number after `place` (gfx950). The caller waits for them.

define i32 @mfmadsl.buffer.to.lds(ptr addrspace(1) %base, i64 %origin, i64 %size, i32 %offset, i32 %step, ptr addrspace(3) %memory, i32 %place) alwaysinline {
  %buffer = call ptr addrspace(8) @mfmadsl.buffer(ptr addrspace(1) %base, i64 %origin, i64 %size)
  %target = getelementptr i8, ptr addrspace(3) %memory, i32 %place
  call void @llvm.amdgcn.raw.ptr.buffer.load.lds(ptr addrspace(8) %buffer, ptr addrspace(3) %target, i32 16, i32 %offset, i32 %step, i32 0, i32 0)
  ret i32 0
}

; The same of 4 bytes a lane.

define i32 @mfmadsl.buffer.to.lds.4(ptr addrspace(1) %base, i64 %origin, i64 %size, i32 %offset, i32 %step, ptr addrspace(3) %memory, i32 %place) alwaysinline {
  %buffer = call ptr addrspace(8) @mfmadsl.buffer(ptr addrspace(1) %base, i64 %origin, i64 %size)
  %target = getelementptr i8, ptr addrspace(3) %memory, i32 %place
  call void @llvm.amdgcn.raw.ptr.buffer.load.lds(ptr addrspace(8) %buffer, ptr addrspace(3) %target, i32 4, i32 %offset, i32 %step, i32 0, i32 0)
  ret i32 0
}

; A barrier for waves that have waited for themselves: at one that releases LDS, LLVM waits for all loads straight into it.

define i32 @mfmadsl.meet() alwaysinline {
  fence syncscope("wavefront") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("wavefront") acquire
  ret i32 0
}

; What this wave has stored in memory is there for all of the chip, and what others have is found there from now on.

define i32 @mfmadsl.release() alwaysinline {
  fence syncscope("agent") release
  ret i32 0
}

define i32 @mfmadsl.acquire() alwaysinline {
  fence syncscope("agent") acquire
  ret i32 0
}

; How many have come before; behind the `last` one there are none again. The counts lie in the GPU's own memory, so that
; one instruction does it.

define i32 @mfmadsl.arrive(ptr addrspace(1) %counts, i32 %place, i32 %last) alwaysinline {
  %far = sext i32 %place to i64
  %count = getelementptr i32, ptr addrspace(1) %counts, i64 %far
  %before = atomicrmw uinc_wrap ptr addrspace(1) %count, i32 %last syncscope("agent") monotonic, align 4, !amdgpu.no.remote.memory !0, !amdgpu.no.fine.grained.memory !0
  ret i32 %before
}

; What the lanes of this wave have written to the LDS is there: the LDS does in order what a wave asks for.

define i32 @mfmadsl.settle() alwaysinline {
  fence syncscope("wavefront") acq_rel
  ret i32 0
}

; For blocks of 16 lanes: each has eight bytes of rows of 16 elements at its address, and gets its column (gfx950).

define <2 x i32> @mfmadsl.read.transposed.16(ptr addrspace(3) %base, i32 %offset) alwaysinline {
  %place = getelementptr i8, ptr addrspace(3) %base, i32 %offset
  %column = call <4 x i16> @llvm.amdgcn.ds.read.tr16.b64.v4i16(ptr addrspace(3) %place)
  %words = bitcast <4 x i16> %column to <2 x i32>
  ret <2 x i32> %words
}

define <2 x i32> @mfmadsl.read.transposed.8(ptr addrspace(3) %base, i32 %offset) alwaysinline {
  %place = getelementptr i8, ptr addrspace(3) %base, i32 %offset
  %words = call <2 x i32> @llvm.amdgcn.ds.read.tr8.b64.v2i32(ptr addrspace(3) %place)
  ret <2 x i32> %words
}

; The largest of numbers, in one instruction. LLVM would first make each of them one that does not signal, if it is none;
; of such ones nothing is said here.

define float @mfmadsl.largest.of.2(float %one, float %two) alwaysinline {
  %largest = call nnan float @llvm.maxnum.f32(float %one, float %two)
  ret float %largest
}

define float @mfmadsl.largest.of.3(float %one, float %two, float %three) alwaysinline {
  %either = call nnan float @llvm.maxnum.f32(float %one, float %two)
  %largest = call nnan float @llvm.maxnum.f32(float %either, float %three)
  ret float %largest
}

; A value of another lane of a group of two, of four, and so on: that of the same place in the other half, if all lanes of
; a half have the same. All lanes of the group are active.

define i32 @mfmadsl.other.half.of.2(i32 %value) convergent alwaysinline {
  ; quad_perm:[1,0,3,2]
  %other = call i32 @llvm.amdgcn.update.dpp.i32(i32 poison, i32 %value, i32 177, i32 15, i32 15, i1 true)
  ret i32 %other
}

define i32 @mfmadsl.other.half.of.4(i32 %value) convergent alwaysinline {
  ; quad_perm:[2,3,0,1]
  %other = call i32 @llvm.amdgcn.update.dpp.i32(i32 poison, i32 %value, i32 78, i32 15, i32 15, i1 true)
  ret i32 %other
}

define i32 @mfmadsl.other.half.of.8(i32 %value) convergent alwaysinline {
  ; row_half_mirror
  %other = call i32 @llvm.amdgcn.update.dpp.i32(i32 poison, i32 %value, i32 321, i32 15, i32 15, i1 true)
  ret i32 %other
}

define i32 @mfmadsl.other.half.of.16(i32 %value) convergent alwaysinline {
  ; row_mirror
  %other = call i32 @llvm.amdgcn.update.dpp.i32(i32 poison, i32 %value, i32 320, i32 15, i32 15, i1 true)
  ret i32 %other
}

define i32 @mfmadsl.other.half.of.32(i32 %value) convergent alwaysinline {
  ; swizzle(BITMASK_PERM, lane ^ 16)
  %other = call i32 @llvm.amdgcn.ds.swizzle(i32 %value, i32 16415)
  ret i32 %other
}

define i32 @mfmadsl.other.half.of.64(i32 %value) convergent alwaysinline {
  ; lane ^ 32, by its place in bytes
  %low = call i32 @llvm.amdgcn.mbcnt.lo(i32 -1, i32 0)
  %lane = call i32 @llvm.amdgcn.mbcnt.hi(i32 -1, i32 %low)
  %across = xor i32 %lane, 32
  %place = shl i32 %across, 2
  %other = call i32 @llvm.amdgcn.ds.bpermute(i32 %place, i32 %value)
  ret i32 %other
}

; The values that the two halves of such a group have, each to all lanes of it (gfx950).

define i32 @mfmadsl.first.half.of.32(i32 %value) convergent alwaysinline {
  %halves = call { i32, i32 } @llvm.amdgcn.permlane16.swap(i32 %value, i32 %value, i1 false, i1 false)
  %half = extractvalue { i32, i32 } %halves, 0
  ret i32 %half
}

define i32 @mfmadsl.second.half.of.32(i32 %value) convergent alwaysinline {
  %halves = call { i32, i32 } @llvm.amdgcn.permlane16.swap(i32 %value, i32 %value, i1 false, i1 false)
  %half = extractvalue { i32, i32 } %halves, 1
  ret i32 %half
}

define i32 @mfmadsl.first.half.of.64(i32 %value) convergent alwaysinline {
  %halves = call { i32, i32 } @llvm.amdgcn.permlane32.swap(i32 %value, i32 %value, i1 false, i1 false)
  %half = extractvalue { i32, i32 } %halves, 0
  ret i32 %half
}

define i32 @mfmadsl.second.half.of.64(i32 %value) convergent alwaysinline {
  %halves = call { i32, i32 } @llvm.amdgcn.permlane32.swap(i32 %value, i32 %value, i1 false, i1 false)
  %half = extractvalue { i32, i32 } %halves, 1
  ret i32 %half
}

; The group of rows that has a tile, where group after group has as many tiles of `side` rows as it needs, and how many
; tiles the groups before it have, above 32 bits. A tile behind the last one has a group behind the last one. Each lane
; looks at a group: its tiles and those of the lanes before it are added up in steps of 1, 2, 4, 8, 16 and 32 lanes.

define i64 @mfmadsl.group.of.tile(ptr addrspace(1) %ends, i32 %groups, i32 %rows, i32 %side, i32 %tile) convergent alwaysinline {
entry:
  %low = call i32 @llvm.amdgcn.mbcnt.lo(i32 -1, i32 0)
  %lane = call i32 @llvm.amdgcn.mbcnt.hi(i32 -1, i32 %low)
  %more = sub i32 %side, 1
  br label %some

some:
  %first = phi i32 [ 0, %entry ], [ %next, %some ]
  %group = phi i32 [ 0, %entry ], [ %group.next, %some ]
  %total = phi i32 [ 0, %entry ], [ %total.next, %some ]
  %before = phi i32 [ 0, %entry ], [ %before.next, %some ]
  %own = add i32 %first, %lane
  %previous = sub i32 %own, 1
  %start = call i32 @mfmadsl.end.of.group(ptr addrspace(1) %ends, i32 %groups, i32 %rows, i32 %previous)
  %end = call i32 @mfmadsl.end.of.group(ptr addrspace(1) %ends, i32 %groups, i32 %rows, i32 %own)
  %length = sub i32 %end, %start
  %present = call i32 @llvm.smax.i32(i32 %length, i32 0)
  %up = add i32 %present, %more
  %tiles = udiv i32 %up, %side
  %of.1 = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %tiles, i32 273, i32 15, i32 15, i1 false)
  %sum.1 = add i32 %tiles, %of.1
  %of.2 = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %sum.1, i32 274, i32 15, i32 15, i1 false)
  %sum.2 = add i32 %sum.1, %of.2
  %of.4 = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %sum.2, i32 276, i32 15, i32 15, i1 false)
  %sum.4 = add i32 %sum.2, %of.4
  %of.8 = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %sum.4, i32 280, i32 15, i32 15, i1 false)
  %sum.8 = add i32 %sum.4, %of.8
  %of.16 = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %sum.8, i32 322, i32 10, i32 15, i1 false)
  %sum.16 = add i32 %sum.8, %of.16
  %of.32 = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %sum.16, i32 323, i32 12, i32 15, i1 false)
  %sum.32 = add i32 %sum.16, %of.32
  %sum = add i32 %sum.32, %total
  %is.before = icmp sle i32 %sum, %tile
  %those = call i64 @llvm.amdgcn.ballot.i64(i1 %is.before)
  %count.64 = call i64 @llvm.ctpop.i64(i64 %those)
  %count = trunc i64 %count.64 to i32
  %nearest = sub i32 %count, 1
  %up.to = call i32 @llvm.amdgcn.readlane.i32(i32 %sum, i32 %nearest)
  %are.any = icmp ne i32 %count, 0
  %before.next = select i1 %are.any, i32 %up.to, i32 %before
  %group.next = add i32 %group, %count
  %total.next = call i32 @llvm.amdgcn.readlane.i32(i32 %sum, i32 63)
  %next = add i32 %first, 64
  %ends.here = icmp sge i32 %next, %groups
  br i1 %ends.here, label %found, label %some

found:
  %high = zext i32 %before.next to i64
  %above = shl i64 %high, 32
  %below = zext i32 %group.next to i64
  %both = or i64 %above, %below
  ret i64 %both
}

; The row behind the last one of a group: of those behind the last group, too, and 0 of what is before the first one.

define i32 @mfmadsl.end.of.group(ptr addrspace(1) %ends, i32 %groups, i32 %rows, i32 %group) alwaysinline {
  %last = sub i32 %groups, 1
  %some = call i32 @llvm.smax.i32(i32 %group, i32 0)
  %one = call i32 @llvm.smin.i32(i32 %some, i32 %last)
  %place = zext i32 %one to i64
  %where = getelementptr i32, ptr addrspace(1) %ends, i64 %place
  %stored = load i32, ptr addrspace(1) %where, align 4
  %at.most = call i32 @llvm.smin.i32(i32 %stored, i32 %rows)
  %known = call i32 @llvm.smax.i32(i32 %at.most, i32 0)
  %is.last = icmp sge i32 %group, %last
  %end = select i1 %is.last, i32 %rows, i32 %known
  %is.none = icmp slt i32 %group, 0
  %found = select i1 %is.none, i32 0, i32 %end
  ret i32 %found
}

; A float rounded to a narrow type, as bits, and back. The same eight-bit instructions mean fnuz on gfx942, OCP on gfx950.

define i32 @mfmadsl.bits.bfloat16(float %value) alwaysinline {
  %rounded = fptrunc float %value to bfloat
  %short = bitcast bfloat %rounded to i16
  %bits = zext i16 %short to i32
  ret i32 %bits
}

define i32 @mfmadsl.pair.bits.bfloat16(<2 x float> %both) alwaysinline {
  %rounded = fptrunc <2 x float> %both to <2 x bfloat>
  %bits = bitcast <2 x bfloat> %rounded to i32
  ret i32 %bits
}

define i32 @mfmadsl.bits.float8_e4m3fnuz(float %value) alwaysinline {
  %both = call i32 @llvm.amdgcn.cvt.pk.fp8.f32(float %value, float %value, i32 0, i1 false)
  %bits = and i32 %both, 255
  ret i32 %bits
}

define float @mfmadsl.value.float8_e4m3fnuz(i32 %bits) alwaysinline {
  %value = call float @llvm.amdgcn.cvt.f32.fp8(i32 %bits, i32 0)
  ret float %value
}

define i32 @mfmadsl.bits.float8_e4m3fn(float %value) alwaysinline {
  %both = call i32 @llvm.amdgcn.cvt.pk.fp8.f32(float %value, float %value, i32 0, i1 false)
  %bits = and i32 %both, 255
  ret i32 %bits
}

define float @mfmadsl.value.float8_e4m3fn(i32 %bits) alwaysinline {
  %value = call float @llvm.amdgcn.cvt.f32.fp8(i32 %bits, i32 0)
  ret float %value
}

define i32 @mfmadsl.bits.float8_e5m2fnuz(float %value) alwaysinline {
  %both = call i32 @llvm.amdgcn.cvt.pk.bf8.f32(float %value, float %value, i32 0, i1 false)
  %bits = and i32 %both, 255
  ret i32 %bits
}

define float @mfmadsl.value.float8_e5m2fnuz(i32 %bits) alwaysinline {
  %value = call float @llvm.amdgcn.cvt.f32.bf8(i32 %bits, i32 0)
  ret float %value
}

define i32 @mfmadsl.bits.float8_e5m2(float %value) alwaysinline {
  %both = call i32 @llvm.amdgcn.cvt.pk.bf8.f32(float %value, float %value, i32 0, i1 false)
  %bits = and i32 %both, 255
  ret i32 %bits
}

define float @mfmadsl.value.float8_e5m2(i32 %bits) alwaysinline {
  %value = call float @llvm.amdgcn.cvt.f32.bf8(i32 %bits, i32 0)
  ret float %value
}

; An element of four bits (E2M1) of a word, `shift` bits up: one instruction makes it and its neighbour in the byte (gfx950).

define half @mfmadsl.element.float4_e2m1fn.float16(i32 %word, i32 %shift) alwaysinline {
  %start = and i32 %shift, 24
  %octet = lshr i32 %word, %start
  %pair = call <2 x half> @llvm.amdgcn.cvt.scalef32.pk.f16.fp4(i32 %octet, float 1.0, i32 0)
  %nibble = lshr i32 %shift, 2
  %which = and i32 %nibble, 1
  %value = extractelement <2 x half> %pair, i32 %which
  ret half %value
}

define float @mfmadsl.element.float4_e2m1fn.float32(i32 %word, i32 %shift) alwaysinline {
  %start = and i32 %shift, 24
  %octet = lshr i32 %word, %start
  %pair = call <2 x float> @llvm.amdgcn.cvt.scalef32.pk.f32.fp4(i32 %octet, float 1.0, i32 0)
  %nibble = lshr i32 %shift, 2
  %which = and i32 %nibble, 1
  %value = extractelement <2 x float> %pair, i32 %which
  ret float %value
}

declare i32 @llvm.amdgcn.perm(i32, i32, i32)
declare <2 x half> @llvm.fma.v2f16(<2 x half>, <2 x half>, <2 x half>)
declare void @llvm.amdgcn.s.barrier()
declare i32 @llvm.smax.i32(i32, i32)
declare i32 @llvm.smin.i32(i32, i32)
declare i64 @llvm.ctpop.i64(i64)
declare i64 @llvm.amdgcn.ballot.i64(i1)
declare i32 @llvm.amdgcn.readlane.i32(i32, i32)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1), i16, i64, i32)
declare i8 @llvm.amdgcn.raw.ptr.buffer.load.i8(ptr addrspace(8), i32, i32, i32 immarg)
declare void @llvm.amdgcn.raw.ptr.buffer.store.i8(i8, ptr addrspace(8), i32, i32, i32 immarg)
declare i16 @llvm.amdgcn.raw.ptr.buffer.load.i16(ptr addrspace(8), i32, i32, i32 immarg)
declare void @llvm.amdgcn.raw.ptr.buffer.store.i16(i16, ptr addrspace(8), i32, i32, i32 immarg)
declare i32 @llvm.amdgcn.raw.ptr.buffer.load.i32(ptr addrspace(8), i32, i32, i32 immarg)
declare void @llvm.amdgcn.raw.ptr.buffer.store.i32(i32, ptr addrspace(8), i32, i32, i32 immarg)
declare <2 x i32> @llvm.amdgcn.raw.ptr.buffer.load.v2i32(ptr addrspace(8), i32, i32, i32 immarg)
declare void @llvm.amdgcn.raw.ptr.buffer.store.v2i32(<2 x i32>, ptr addrspace(8), i32, i32, i32 immarg)
declare <4 x i32> @llvm.amdgcn.raw.ptr.buffer.load.v4i32(ptr addrspace(8), i32, i32, i32 immarg)
declare void @llvm.amdgcn.raw.ptr.buffer.store.v4i32(<4 x i32>, ptr addrspace(8), i32, i32, i32 immarg)
declare i32 @llvm.amdgcn.update.dpp.i32(i32, i32, i32 immarg, i32 immarg, i32 immarg, i1 immarg)
declare i32 @llvm.amdgcn.ds.swizzle(i32, i32 immarg)
declare i32 @llvm.amdgcn.ds.bpermute(i32, i32)
declare i32 @llvm.amdgcn.mbcnt.lo(i32, i32)
declare i32 @llvm.amdgcn.mbcnt.hi(i32, i32)
declare i32 @llvm.amdgcn.cvt.pk.fp8.f32(float, float, i32, i1 immarg)
declare float @llvm.amdgcn.cvt.f32.fp8(i32, i32 immarg)
declare i32 @llvm.amdgcn.cvt.pk.bf8.f32(float, float, i32, i1 immarg)
declare float @llvm.amdgcn.cvt.f32.bf8(i32, i32 immarg)
declare <2 x half> @llvm.amdgcn.cvt.scalef32.pk.f16.fp4(i32, float, i32 immarg)
declare <2 x float> @llvm.amdgcn.cvt.scalef32.pk.f32.fp4(i32, float, i32 immarg)
declare <4 x i16> @llvm.amdgcn.ds.read.tr16.b64.v4i16(ptr addrspace(3))
declare <2 x i32> @llvm.amdgcn.ds.read.tr8.b64.v2i32(ptr addrspace(3))
declare void @llvm.amdgcn.raw.ptr.buffer.load.lds(ptr addrspace(8), ptr addrspace(3), i32 immarg, i32, i32, i32 immarg, i32 immarg)

!0 = !{}
