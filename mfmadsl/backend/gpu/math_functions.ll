; Functions of float32 that LLVM's AMDGPU backend does not expand by itself. There is no device library: a kernel calls
; these by name, and they are linked into its module and inlined. `passes/types/functions.py` says how exact they are.

target triple = "amdgcn-amd-amdhsa"

; The instruction does not take denormal numbers: they are scaled by 2^24, and the result by 2^12.

define float @mfmadsl.rsqrt(float %x) alwaysinline {
  %small = fcmp olt float %x, 0x3810000000000000
  %up = select i1 %small, float 0x4170000000000000, float 1.0
  %scaled = fmul float %x, %up
  %root = call float @llvm.amdgcn.rsq.f32(float %scaled)
  %back = select i1 %small, float 4096.0, float 1.0
  %result = fmul float %root, %back
  ret float %result
}

; From the exponential of what is not positive, which cannot overflow: 1 / (1 + e), or e / (1 + e) for negative ones.

define float @mfmadsl.sigmoid(float %x) alwaysinline {
  %size = call float @llvm.fabs.f32(float %x)
  %minus = fneg float %size
  %e = call float @llvm.exp.f32(float %minus)
  %positive = fcmp oge float %x, 0.0
  %above = select i1 %positive, float 1.0, float %e
  %below = fadd float %e, 1.0
  %result = fdiv float %above, %below
  ret float %result
}

; A polynomial (Cephes, tanhf) below 0.625, where 1 - 2 / (exp(2 x) + 1) would cancel.

define float @mfmadsl.tanh(float %x) alwaysinline {
  %size = call float @llvm.fabs.f32(float %x)
  %twice = fadd float %size, %size
  %e = call float @llvm.exp.f32(float %twice)
  %below = fadd float %e, 1.0
  %part = fdiv float 2.0, %below
  %rest = fsub float 1.0, %part
  %large = call float @llvm.copysign.f32(float %rest, float %x)
  %s = fmul float %x, %x
  %p1 = call float @llvm.fma.f32(float 0xBF775E1D40000000, float %s, float 0x3F952269C0000000)
  %p2 = call float @llvm.fma.f32(float %p1, float %s, float 0xBFAB83C5A0000000)
  %p3 = call float @llvm.fma.f32(float %p2, float %s, float 0x3FC1107260000000)
  %p4 = call float @llvm.fma.f32(float %p3, float %s, float 0xBFD5555320000000)
  %cube = fmul float %s, %x
  %small = call float @llvm.fma.f32(float %p4, float %cube, float %x)
  %is.small = fcmp olt float %size, 0.625
  %result = select i1 %is.small, float %small, float %large
  ret float %result
}

; Polynomials by N. Juffa: x + x P(x^2) below 0.928, 1 - exp(P(x)) above.

define float @mfmadsl.erf(float %x) alwaysinline {
  %t = call float @llvm.fabs.f32(float %x)
  %s = fmul float %x, %x
  %p1 = call float @llvm.fma.f32(float 0xBF438E0000000000, float %s, float 0x3F7471A580000000)
  %p2 = call float @llvm.fma.f32(float %p1, float %s, float 0xBF9B691B20000000)
  %p3 = call float @llvm.fma.f32(float %p2, float %s, float 0x3FBCE1C440000000)
  %p4 = call float @llvm.fma.f32(float %p3, float %s, float 0xBFD8127000000000)
  %p5 = call float @llvm.fma.f32(float %p4, float %s, float 0x3FC06EBA80000000)
  %small = call float @llvm.fma.f32(float %p5, float %x, float %x)
  %q1 = call float @llvm.fma.f32(float 0xBEF2200000000000, float %t, float 0x3F391CFB20000000)
  %q2 = call float @llvm.fma.f32(float 0xBF6FD14380000000, float %t, float 0x3F98D63420000000)
  %q3 = call float @llvm.fma.f32(float %q1, float %s, float %q2)
  %q4 = call float @llvm.fma.f32(float %q3, float %t, float 0xBFBB55CB80000000)
  %q5 = call float @llvm.fma.f32(float %q4, float %t, float 0xBFE450AA00000000)
  %q6 = call float @llvm.fma.f32(float %q5, float %t, float 0xBFC079D0C0000000)
  %minus = fneg float %t
  %exponent = call float @llvm.fma.f32(float %q6, float %t, float %minus)
  %e = call float @llvm.exp.f32(float %exponent)
  %rest = fsub float 1.0, %e
  %large = call float @llvm.copysign.f32(float %rest, float %x)
  %is.large = fcmp ogt float %t, 0x3FEDB00000000000
  %result = select i1 %is.large, float %large, float %small
  ret float %result
}

; exp2(y log2(|x|)) in double precision, whose 53 bits leave enough after the exponent; then C's rules for the sign.

define float @mfmadsl.pow(float %x, float %y) alwaysinline {
  %size = call float @llvm.fabs.f32(float %x)
  %a = fpext float %size to double
  %power = fpext float %y to double
  ; |x| = m 2^e, with m between sqrt(1/2) and sqrt(2); log2(m) = 2 / ln(2) atanh(s).
  %mantissa = call double @llvm.amdgcn.frexp.mant.f64(double %a)
  %whole = call i32 @llvm.amdgcn.frexp.exp.i32.f64(double %a)
  %is.low = fcmp olt double %mantissa, 0x3FE6A09E667F3BCD
  %two = select i1 %is.low, double 2.0, double 1.0
  %one = zext i1 %is.low to i32
  %m = fmul double %mantissa, %two
  %e = sub i32 %whole, %one
  %above = fadd double %m, -1.0
  %below = fadd double %m, 1.0
  %s = fdiv double %above, %below
  %z = fmul double %s, %s
  %p1 = call double @llvm.fma.f64(double 0x3FC89F3B1694CFFE, double %z, double 0x3FCC68F568D31760)
  %p2 = call double @llvm.fma.f64(double %p1, double %z, double 0x3FD0C9A84994022D)
  %p3 = call double @llvm.fma.f64(double %p2, double %z, double 0x3FD484B13D7C02A9)
  %p4 = call double @llvm.fma.f64(double %p3, double %z, double 0x3FDA61762A7ADED9)
  %p5 = call double @llvm.fma.f64(double %p4, double %z, double 0x3FE2776C50EF9BFE)
  %p6 = call double @llvm.fma.f64(double %p5, double %z, double 0x3FEEC709DC3A03FD)
  %p7 = call double @llvm.fma.f64(double %p6, double %z, double 0x40071547652B82FE)
  %exponent = sitofp i32 %e to double
  %log = call double @llvm.fma.f64(double %p7, double %s, double %exponent)
  %is.zero = fcmp oeq double %a, 0.0
  %log.zero = select i1 %is.zero, double 0xFFF0000000000000, double %log
  %is.infinite = fcmp oeq double %a, 0x7FF0000000000000
  %log.all = select i1 %is.infinite, double %a, double %log.zero
  ; Beyond 2^300 all is infinite, or 0, as float.
  %t = fmul double %power, %log.all
  %t.low = call double @llvm.minnum.f64(double %t, double 300.0)
  %t.both = call double @llvm.maxnum.f64(double %t.low, double -300.0)
  %n = call double @llvm.rint.f64(double %t.both)
  %f = fsub double %t.both, %n
  %r1 = call double @llvm.fma.f64(double 0x3DFE8CAC7351BB22, double %f, double 0x3E3E4CF5158B8EC7)
  %r2 = call double @llvm.fma.f64(double %r1, double %f, double 0x3E7B5253D395E7C1)
  %r3 = call double @llvm.fma.f64(double %r2, double %f, double 0x3EB62C0223A5C822)
  %r4 = call double @llvm.fma.f64(double %r3, double %f, double 0x3EEFFCBFC588B0C5)
  %r5 = call double @llvm.fma.f64(double %r4, double %f, double 0x3F2430912F86C786)
  %r6 = call double @llvm.fma.f64(double %r5, double %f, double 0x3F55D87FE78A6730)
  %r7 = call double @llvm.fma.f64(double %r6, double %f, double 0x3F83B2AB6FBA4E77)
  %r8 = call double @llvm.fma.f64(double %r7, double %f, double 0x3FAC6B08D704A0BF)
  %r9 = call double @llvm.fma.f64(double %r8, double %f, double 0x3FCEBFBDFF82C58E)
  %r10 = call double @llvm.fma.f64(double %r9, double %f, double 0x3FE62E42FEFA39EF)
  %r11 = call double @llvm.fma.f64(double %r10, double %f, double 0x3FF0000000000000)
  %shift = fptosi double %n to i32
  %scaled = call double @llvm.ldexp.f64.i32(double %r11, i32 %shift)
  %result = fptrunc double %scaled to float
  ; 1 to any power is 1, and so is anything to the power of 0, NaN or not.
  %is.one = fcmp oeq float %size, 1.0
  %magnitude = select i1 %is.one, float 1.0, float %result
  %truncated = call float @llvm.trunc.f32(float %y)
  %is.whole = fcmp oeq float %truncated, %y
  %half = fmul float %y, 0.5
  %half.truncated = call float @llvm.trunc.f32(float %half)
  %is.uneven = fcmp une float %half.truncated, %half
  %is.odd = and i1 %is.whole, %is.uneven
  %minus = fneg float %magnitude
  %bits = bitcast float %x to i32
  %is.negative = icmp slt i32 %bits, 0
  %turns = and i1 %is.negative, %is.odd
  %signed = select i1 %turns, float %minus, float %magnitude
  %below.zero = fcmp olt float %x, 0.0
  %finite = fcmp ogt float %x, 0xFFF0000000000000
  %real = and i1 %below.zero, %finite
  %not.whole = xor i1 %is.whole, true
  %no.root = and i1 %real, %not.whole
  %unordered = fcmp uno float %x, %y
  %is.nan = or i1 %no.root, %unordered
  %or.nan = select i1 %is.nan, float 0x7FF8000000000000, float %signed
  %to.zero = fcmp oeq float %y, 0.0
  %of.one = fcmp oeq float %x, 1.0
  %always.one = or i1 %to.zero, %of.one
  %value = select i1 %always.one, float 1.0, float %or.nan
  ret float %value
}

; Small whole powers.

define float @mfmadsl.pow.2(float %x) alwaysinline {
  %square = fmul float %x, %x
  ret float %square
}

define float @mfmadsl.pow.3(float %x) alwaysinline {
  %square = fmul float %x, %x
  %cube = fmul float %square, %x
  ret float %cube
}

define float @mfmadsl.pow.4(float %x) alwaysinline {
  %square = fmul float %x, %x
  %fourth = fmul float %square, %square
  ret float %fourth
}

; The rest of a number beside multiples of pi / 2, in double precision, whose series (Taylor) leave nothing that a float could
; tell. Two parts of pi / 2 are exact enough up to 2^50, beyond which the number of quarters is none that a double can tell.

define float @mfmadsl.sin(float %x) alwaysinline {
  %result = call float @mfmadsl.wave(float %x, i32 0)
  ret float %result
}

define float @mfmadsl.cos(float %x) alwaysinline {
  %result = call float @mfmadsl.wave(float %x, i32 1)
  ret float %result
}

define float @mfmadsl.wave(float %x, i32 %ahead) alwaysinline {
  %wide = fpext float %x to double
  %turned = fmul double %wide, 0x3FE45F306DC9C883
  %near = call double @llvm.rint.f64(double %turned)
  %minus = fneg double %near
  %rest.1 = call double @llvm.fma.f64(double %minus, double 0x3FF921FB54442D18, double %wide)
  %rest.2 = call double @llvm.fma.f64(double %minus, double 0x3C91A62633145C07, double %rest.1)
  %is.first = fcmp oeq double %near, 0.0
  %r = select i1 %is.first, double %wide, double %rest.2
  %fourth = fmul double %near, 0.25
  %whole = call double @llvm.floor.f64(double %fourth)
  %left = call double @llvm.fma.f64(double %whole, double -4.0, double %near)
  %number = fptosi double %left to i32
  %quarter = add i32 %number, %ahead
  %s = fmul double %r, %r
  %s1 = call double @llvm.fma.f64(double 0x3DE6124613A86D09, double %s, double 0xBE5AE64567F544E4)
  %s2 = call double @llvm.fma.f64(double %s1, double %s, double 0x3EC71DE3A556C734)
  %s3 = call double @llvm.fma.f64(double %s2, double %s, double 0xBF2A01A01A01A01A)
  %s4 = call double @llvm.fma.f64(double %s3, double %s, double 0x3F81111111111111)
  %s5 = call double @llvm.fma.f64(double %s4, double %s, double 0xBFC5555555555555)
  %cube = fmul double %s, %r
  %sine = call double @llvm.fma.f64(double %s5, double %cube, double %r)
  %c1 = call double @llvm.fma.f64(double 0xBDA93974A8C07C9D, double %s, double 0x3E21EED8EFF8D898)
  %c2 = call double @llvm.fma.f64(double %c1, double %s, double 0xBE927E4FB7789F5C)
  %c3 = call double @llvm.fma.f64(double %c2, double %s, double 0x3EFA01A01A01A01A)
  %c4 = call double @llvm.fma.f64(double %c3, double %s, double 0xBF56C16C16C16C17)
  %c5 = call double @llvm.fma.f64(double %c4, double %s, double 0x3FA5555555555555)
  %c6 = call double @llvm.fma.f64(double %c5, double %s, double -0.5)
  %cosine = call double @llvm.fma.f64(double %c6, double %s, double 1.0)
  %odd = and i32 %quarter, 1
  %is.odd = icmp ne i32 %odd, 0
  %half = and i32 %quarter, 2
  %is.below = icmp ne i32 %half, 0
  %value = select i1 %is.odd, double %cosine, double %sine
  %opposite = fneg double %value
  %signed = select i1 %is.below, double %opposite, double %value
  %size = call float @llvm.fabs.f32(float %x)
  %is.known = fcmp olt float %size, 0x4310000000000000
  %all = select i1 %is.known, double %signed, double 0x7FF8000000000000
  %result = fptrunc double %all to float
  ret float %result
}

declare float @llvm.fabs.f32(float)
declare float @llvm.copysign.f32(float, float)
declare float @llvm.trunc.f32(float)
declare float @llvm.exp.f32(float)
declare float @llvm.fma.f32(float, float, float)
declare float @llvm.amdgcn.rsq.f32(float)
declare double @llvm.fma.f64(double, double, double)
declare double @llvm.rint.f64(double)
declare double @llvm.floor.f64(double)
declare double @llvm.minnum.f64(double, double)
declare double @llvm.maxnum.f64(double, double)
declare double @llvm.ldexp.f64.i32(double, i32)
declare double @llvm.amdgcn.frexp.mant.f64(double)
declare i32 @llvm.amdgcn.frexp.exp.i32.f64(double)
