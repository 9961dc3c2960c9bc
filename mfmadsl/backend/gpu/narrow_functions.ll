; Narrow floats on chips that do not convert them: what `device_functions.ll` has instructions for, by integers. A float
; is rounded to nearest, ties to even. What is too large becomes infinite, or NaN where there is no infinity.

target triple = "amdgcn-amd-amdhsa"

; Two elements of four bits (E2M1) of a byte, whose halves have nothing but zeros in their lower bytes. The upper ones, without
; signs, are in a table of eight bytes, from which one instruction takes those of four elements of a word.

define i32 @mfmadsl.soft.octets.float4_e2m1fn(i32 %word) alwaysinline {
  %codes = and i32 %word, 117901063 ; 0x07070707
  %sizes = call i32 @llvm.amdgcn.perm(i32 1178878528, i32 1044133888, i32 %codes) ; of 6, 4, 3, 2 and 1.5, 1, 0.5, 0
  %moved = shl i32 %word, 4
  %signs = and i32 %moved, -2139062144 ; 0x80808080
  %octets = or i32 %signs, %sizes
  ret i32 %octets
}

define <2 x half> @mfmadsl.soft.pair.float4_e2m1fn(i32 %word, i32 %shift) alwaysinline {
  %low = call i32 @mfmadsl.soft.octets.float4_e2m1fn(i32 %word)
  %upper = lshr i32 %word, 4
  %high = call i32 @mfmadsl.soft.octets.float4_e2m1fn(i32 %upper)
  %octet = lshr i32 %shift, 3
  %places = mul i32 %octet, 16777472 ; 1 << 8 | 1 << 24
  %selector = add i32 %places, 67895308 ; 0x040C000C: a byte of each, behind a zero
  %both = call i32 @llvm.amdgcn.perm(i32 %high, i32 %low, i32 %selector)
  %pair = bitcast i32 %both to <2 x half>
  ret <2 x half> %pair
}

define half @mfmadsl.soft.element.float4_e2m1fn.float16(i32 %word, i32 %shift) alwaysinline {
  %pair = call <2 x half> @mfmadsl.soft.pair.float4_e2m1fn(i32 %word, i32 %shift)
  %nibble = lshr i32 %shift, 2
  %which = and i32 %nibble, 1
  %value = extractelement <2 x half> %pair, i32 %which
  ret half %value
}

define float @mfmadsl.soft.element.float4_e2m1fn.float32(i32 %word, i32 %shift) alwaysinline {
  %half = call half @mfmadsl.soft.element.float4_e2m1fn.float16(i32 %word, i32 %shift)
  %value = fpext half %half to float
  ret float %value
}

; A bfloat16 is the upper half of a float. Where LLVM knows of a value that it is no NaN, as after a maximum with a number, it leaves
; out what looks for one, which it does not where it rounds by itself.

define i32 @mfmadsl.soft.bits.bfloat16(float %value) alwaysinline {
  %whole = bitcast float %value to i32
  %last = lshr i32 %whole, 16
  %odd = and i32 %last, 1
  %up = add i32 %odd, 32767
  %carried = add i32 %whole, %up
  %is.nan = fcmp uno float %value, 0.0
  %chosen = select i1 %is.nan, i32 2143289344, i32 %carried
  %bits = lshr i32 %chosen, 16
  ret i32 %bits
}

; The same of a number whose lower half is zero if it is NaN: rounded up, it stays the same NaN.

define i32 @mfmadsl.soft.bits.bfloat16.of_product(float %value) alwaysinline {
  %bits = bitcast float %value to i32
  %moved = lshr i32 %bits, 16
  %odd = and i32 %moved, 1
  %half = add i32 %odd, 32767
  %up = add i32 %bits, %half
  %upper = lshr i32 %up, 16
  ret i32 %upper
}

; The same of what a bfloat16 is.

define i32 @mfmadsl.soft.bits.bfloat16.of_exact(float %value) alwaysinline {
  %bits = bitcast float %value to i32
  %upper = lshr i32 %bits, 16
  ret i32 %upper
}

; Two of each, in the halves of a word.

define i32 @mfmadsl.pair.soft.bits.bfloat16.of_exact(<2 x float> %both) alwaysinline {
  %bits = bitcast <2 x float> %both to <2 x i32>
  %first = extractelement <2 x i32> %bits, i32 0
  %second = extractelement <2 x i32> %bits, i32 1
  %upper = call i32 @llvm.amdgcn.perm(i32 %second, i32 %first, i32 117834498) ; 0x07060302
  ret i32 %upper
}

define i32 @mfmadsl.pair.soft.bits.bfloat16(<2 x float> %both) alwaysinline {
  %low = extractelement <2 x float> %both, i32 0
  %high = extractelement <2 x float> %both, i32 1
  %first = call i32 @mfmadsl.soft.bits.bfloat16(float %low)
  %second = call i32 @mfmadsl.soft.bits.bfloat16(float %high)
  %bits = call i32 @llvm.amdgcn.perm(i32 %second, i32 %first, i32 84148480) ; 0x05040100
  ret i32 %bits
}

define i32 @mfmadsl.pair.soft.bits.bfloat16.of_product(<2 x float> %both) alwaysinline {
  %bits = bitcast <2 x float> %both to <2 x i32>
  %moved = lshr <2 x i32> %bits, splat (i32 16)
  %odd = and <2 x i32> %moved, splat (i32 1)
  %half = add <2 x i32> %odd, splat (i32 32767)
  %up = add <2 x i32> %bits, %half
  %rounded = bitcast <2 x i32> %up to <2 x float>
  %upper = call i32 @mfmadsl.pair.soft.bits.bfloat16.of_exact(<2 x float> %rounded)
  ret i32 %upper
}

; The same of the product of a number of eight bits and a bfloat16, in floats, of which two take as long as one: p (1 + 2^-16),
; rounded, is 2^-16 of what p is rounded to more than p (Veltkamp's splitting). Ties go to even, since p has no more than 16
; bits, and nothing overflows that is not infinite in the end. An infinite factor is to stay so. Zeros lose their sign, which
; sums do not ask for: pairs are what a matrix core multiplies.

define <2 x float> @mfmadsl.rounded.factors(<2 x float> %numbers, <2 x float> %factors) alwaysinline {
  %more = fmul <2 x float> %factors, splat (float 0x3FF0001000000000) ; 1 + 2^-16
  %size = call <2 x float> @llvm.fabs.v2f32(<2 x float> %factors)
  %infinite = fcmp oeq <2 x float> %size, splat (float 0x7FF0000000000000)
  %opposite = fneg <2 x float> %factors
  %less = select <2 x i1> %infinite, <2 x float> zeroinitializer, <2 x float> %opposite
  %sum = fmul <2 x float> %numbers, %more
  %part = call <2 x float> @llvm.fma.v2f32(<2 x float> %numbers, <2 x float> %less, <2 x float> %sum)
  %rounded = fmul <2 x float> %part, splat (float 6.553600e+04)
  ret <2 x float> %rounded
}

define i32 @mfmadsl.pair.soft.bits.bfloat16.of_factors(<2 x float> %numbers, <2 x float> %factors) alwaysinline {
  %rounded = call <2 x float> @mfmadsl.rounded.factors(<2 x float> %numbers, <2 x float> %factors)
  %upper = call i32 @mfmadsl.pair.soft.bits.bfloat16.of_exact(<2 x float> %rounded)
  ret i32 %upper
}

define i32 @mfmadsl.soft.bits.bfloat16.of_factors(float %number, float %factor) alwaysinline {
  %product = fmul float %number, %factor
  %bits = call i32 @mfmadsl.soft.bits.bfloat16.of_product(float %product)
  ret i32 %bits
}

; The bits without the sign of a number's size in a type of `%fraction` bits of fraction, at most `%most`.

define i32 @mfmadsl.soft.size(float %x, i32 %fraction, i32 %bias, i32 %most) alwaysinline {
  %size = call float @llvm.fabs.f32(float %x)
  %whole = bitcast float %size to i32
  ; Of normal numbers as many bits are rounded off as there are too many, and a carry goes into the exponent.
  %off = sub i32 23, %fraction
  %last = lshr i32 %whole, %off
  %odd = and i32 %last, 1
  %above = sub i32 %off, 1
  %half = shl i32 1, %above
  %below.half = sub i32 %half, 1
  %up = add i32 %below.half, %odd
  %carried = add i32 %whole, %up
  %cut = lshr i32 %carried, %off
  %less = sub i32 127, %bias
  %rebias = shl i32 %less, %fraction
  %normal = sub i32 %cut, %rebias
  ; Smaller ones are added to a number whose last place is that of the type's denormals.
  %places = add i32 %bias, %fraction
  %exponent = sub i32 151, %places
  %magic = shl i32 %exponent, 23
  %large = bitcast i32 %magic to float
  %sum = fadd float %size, %large
  %sum.bits = bitcast float %sum to i32
  %denormal = sub i32 %sum.bits, %magic
  %least.exponent = sub i32 128, %bias
  %least = shl i32 %least.exponent, 23
  %is.small = icmp ult i32 %whole, %least
  %rounded = select i1 %is.small, i32 %denormal, i32 %normal
  %bits = call i32 @llvm.umin.i32(i32 %rounded, i32 %most)
  ret i32 %bits
}

; The bits of the sign, in their place of eight.

define i32 @mfmadsl.soft.sign(float %x) alwaysinline {
  %whole = bitcast float %x to i32
  %shifted = lshr i32 %whole, 24
  %sign = and i32 %shifted, 128
  ret i32 %sign
}

; With zeros of both signs; NaN is `%nan`.

define i32 @mfmadsl.soft.signed(float %x, i32 %size, i32 %nan) alwaysinline {
  %is.nan = fcmp uno float %x, 0.0
  %chosen = select i1 %is.nan, i32 %nan, i32 %size
  %sign = call i32 @mfmadsl.soft.sign(float %x)
  %bits = or i32 %chosen, %sign
  ret i32 %bits
}

; With one zero; its negative is NaN, and so is what is too large.

define i32 @mfmadsl.soft.unsigned.zero(float %x, i32 %size) alwaysinline {
  %sign = call i32 @mfmadsl.soft.sign(float %x)
  %with.sign = or i32 %size, %sign
  %is.zero = icmp eq i32 %size, 0
  %number = select i1 %is.zero, i32 0, i32 %with.sign
  %is.nan = fcmp uno float %x, 0.0
  %is.large = icmp ugt i32 %size, 127
  %is.none = or i1 %is.nan, %is.large
  %bits = select i1 %is.none, i32 128, i32 %number
  ret i32 %bits
}

define i32 @mfmadsl.soft.bits.float8_e4m3fn(float %x) alwaysinline {
  %size = call i32 @mfmadsl.soft.size(float %x, i32 3, i32 7, i32 127)
  %bits = call i32 @mfmadsl.soft.signed(float %x, i32 %size, i32 127)
  ret i32 %bits
}

define i32 @mfmadsl.soft.bits.float8_e5m2(float %x) alwaysinline {
  %size = call i32 @mfmadsl.soft.size(float %x, i32 2, i32 15, i32 124)
  %bits = call i32 @mfmadsl.soft.signed(float %x, i32 %size, i32 126)
  ret i32 %bits
}

; Four bits, of a number that is at most 6 and no NaN.

define i32 @mfmadsl.soft.bits.float4_e2m1fn(float %x) alwaysinline {
  %size = call i32 @mfmadsl.soft.size(float %x, i32 1, i32 1, i32 7)
  %whole = bitcast float %x to i32
  %moved = lshr i32 %whole, 28
  %sign = and i32 %moved, 8
  %bits = or i32 %size, %sign
  ret i32 %bits
}

define i32 @mfmadsl.soft.bits.float8_e4m3fnuz(float %x) alwaysinline {
  %size = call i32 @mfmadsl.soft.size(float %x, i32 3, i32 8, i32 128)
  %bits = call i32 @mfmadsl.soft.unsigned.zero(float %x, i32 %size)
  ret i32 %bits
}

define i32 @mfmadsl.soft.bits.float8_e5m2fnuz(float %x) alwaysinline {
  %size = call i32 @mfmadsl.soft.size(float %x, i32 2, i32 16, i32 128)
  %bits = call i32 @mfmadsl.soft.unsigned.zero(float %x, i32 %size)
  ret i32 %bits
}

; The number that bits are, where they are no infinity and not NaN: as fields of a float, whose exponents have another bias. What is
; denormal there is so here, too.

define float @mfmadsl.soft.number(i32 %bits, i32 %fraction, i32 %bias) alwaysinline {
  %size = and i32 %bits, 127
  %off = sub i32 23, %fraction
  %moved = shl i32 %size, %off
  %high = and i32 %bits, 128
  %sign = shl i32 %high, 24
  %whole = or i32 %moved, %sign
  %small = bitcast i32 %whole to float
  %less = sub i32 254, %bias
  %rebias.bits = shl i32 %less, 23
  %rebias = bitcast i32 %rebias.bits to float
  %number = fmul float %small, %rebias
  ret float %number
}

define float @mfmadsl.soft.value.float8_e4m3fn(i32 %bits) alwaysinline {
  %number = call float @mfmadsl.soft.number(i32 %bits, i32 3, i32 7)
  %size = and i32 %bits, 127
  %is.nan = icmp eq i32 %size, 127
  %value = select i1 %is.nan, float 0x7FF8000000000000, float %number
  ret float %value
}

define float @mfmadsl.soft.value.float8_e5m2(i32 %bits) alwaysinline {
  %number = call float @mfmadsl.soft.number(i32 %bits, i32 2, i32 15)
  %size = and i32 %bits, 127
  %infinite = call float @llvm.copysign.f32(float 0x7FF0000000000000, float %number)
  %is.infinite = icmp eq i32 %size, 124
  %finite = select i1 %is.infinite, float %infinite, float %number
  %is.nan = icmp ugt i32 %size, 124
  %value = select i1 %is.nan, float 0x7FF8000000000000, float %finite
  ret float %value
}

define float @mfmadsl.soft.value.float8_e4m3fnuz(i32 %bits) alwaysinline {
  %number = call float @mfmadsl.soft.number(i32 %bits, i32 3, i32 8)
  %is.nan = icmp eq i32 %bits, 128
  %value = select i1 %is.nan, float 0x7FF8000000000000, float %number
  ret float %value
}

define float @mfmadsl.soft.value.float8_e5m2fnuz(i32 %bits) alwaysinline {
  %number = call float @mfmadsl.soft.number(i32 %bits, i32 2, i32 16)
  %is.nan = icmp eq i32 %bits, 128
  %value = select i1 %is.nan, float 0x7FF8000000000000, float %number
  ret float %value
}

; A scale is the exponent of a float, the least of which is denormal there: 2^-127. It has no zero and no sign.

define float @mfmadsl.soft.value.float8_e8m0fnu(i32 %bits) alwaysinline {
  %moved = shl i32 %bits, 23
  %least = call i32 @llvm.umax.i32(i32 %moved, i32 4194304)
  %is.nan = icmp eq i32 %bits, 255
  %whole = select i1 %is.nan, i32 2143289344, i32 %least
  %value = bitcast i32 %whole to float
  ret float %value
}

; To nearest, ties to the larger power. As in ml_dtypes, what is above 2^-127 is no longer that.

define i32 @mfmadsl.soft.bits.float8_e8m0fnu(float %x) alwaysinline {
  %whole = bitcast float %x to i32
  %carried = add i32 %whole, 4194304
  %nearest = lshr i32 %carried, 23
  %is.least = icmp ule i32 %whole, 4194304
  %number = select i1 %is.least, i32 0, i32 %nearest
  ; Zero and what is negative, infinite or NaN, or becomes infinite.
  %before = sub i32 %whole, 1
  %is.none = icmp uge i32 %before, 2134900735
  %bits = select i1 %is.none, i32 255, i32 %number
  ret i32 %bits
}

declare float @llvm.fabs.f32(float)
declare float @llvm.copysign.f32(float, float)
declare i32 @llvm.umin.i32(i32, i32)
declare i32 @llvm.umax.i32(i32, i32)
declare i32 @llvm.amdgcn.perm(i32, i32, i32)
declare <2 x float> @llvm.fabs.v2f32(<2 x float>)
declare <2 x float> @llvm.fma.v2f32(<2 x float>, <2 x float>, <2 x float>)
