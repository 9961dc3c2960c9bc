// Kernels of many kinds, each of which clang compiles with -DKIND: two groups of 256 threads.

typedef unsigned int word;
typedef unsigned long wide;
typedef float float4 __attribute__((ext_vector_type(4)));
typedef float float16 __attribute__((ext_vector_type(16)));
typedef _Float16 half2 __attribute__((ext_vector_type(2)));
typedef _Float16 half4 __attribute__((ext_vector_type(4)));

#define GLOBAL __attribute__((address_space(1)))
#define LDS static __attribute__((address_space(3), loader_uninitialized))
#define KERNEL(A, B) \
  __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(256, 256))) void kernel( \
      GLOBAL A *a, GLOBAL B *b, int n)

LDS word words[1024];
LDS float floats[1024];

static int thread(void) { return __builtin_amdgcn_workitem_id_x(); }
static int number(void) { return thread() + __builtin_amdgcn_workgroup_id_x() * 256; }
static int bits(float x) { return __builtin_bit_cast(int, x); }
static float number_of(int x) { return __builtin_bit_cast(float, x); }

static void barrier(void) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

#if defined(SORT)
KERNEL(word, word) {
  word t = thread();
  words[t] = a[number()];
  barrier();
  for (word size = 2; size <= 256; size *= 2)
    for (word step = size / 2; step > 0; step /= 2) {
      word other = t ^ step;
      if (other > t && (words[t] > words[other]) == !(t & size)) {
        word kept = words[t];
        words[t] = words[other];
        words[other] = kept;
      }
      barrier();
    }
  b[number()] = words[t];
}
#elif defined(SUM_OF_LANES)
KERNEL(float, float) {
  float sum = 0;
  for (int i = thread(); i < n; i += 256) sum += a[i];
  for (int step = 32; step > 0; step /= 2)
    sum += number_of(__builtin_amdgcn_ds_bpermute(4 * ((thread() ^ step) & 63), bits(sum)));
  if ((thread() & 63) == 0) floats[thread() >> 6] = sum;
  barrier();
  if (thread() == 0) b[0] = floats[0] + floats[1] + floats[2] + floats[3];
}
#elif defined(SCAN)
#define ADD(control) \
  x += number_of(__builtin_amdgcn_update_dpp(0, bits(x), control, 15, 15, 0))
KERNEL(float, float) {
  float x = a[number()];
  ADD(0x111); ADD(0x112); ADD(0x114); ADD(0x118); ADD(0x142); ADD(0x143);
  b[number()] = x + number_of(__builtin_amdgcn_readlane(bits(x), 63));
}
#elif defined(DIVISION)
KERNEL(float, float) {
  int i = number();
  if (i < n) b[i] = a[i] / b[i] / (a[i] + 1.0f);
}
#elif defined(DOUBLES)
KERNEL(double, double) {
  int i = number();
  if (i < n) b[i] = a[i] / b[i] + __builtin_sqrt(a[i]);
}
#elif defined(REMAINDER)
KERNEL(word, word) {
  int i = number();
  wide x = a[i], y = b[i];
  b[i] = (word)((x * y + 12345) % (wide)n) + (word)(x / (y + 1));
}
#elif defined(MATRIX_OF_HALVES)
KERNEL(half4, float4) {
  float4 sum = {0};
  for (int i = 0; i < 8; i++)
    sum = __builtin_amdgcn_mfma_f32_16x16x16f16(a[thread() + 64 * i], a[thread()], sum, 0, 0, 0);
  b[thread()] = sum * 2.0f;
}
#elif defined(MATRIX_OF_FLOATS)
KERNEL(float, float16) {
  float16 sum = {0};
  for (int i = 0; i < 8; i++)
    sum = __builtin_amdgcn_mfma_f32_32x32x2f32(a[thread() + 64 * i], a[thread()], sum, 0, 0, 0);
  b[number()] = b[number()] * 3.0f + sum;
}
#elif defined(SOFTMAX)
KERNEL(float, float) {
  float most = -1e30f, sum = 0;
  for (int i = thread(); i < n; i += 256) most = __builtin_fmaxf(most, a[i]);
  floats[thread()] = most;
  barrier();
  for (int step = 128; step; step /= 2) {
    if (thread() < step)
      floats[thread()] = __builtin_fmaxf(floats[thread()], floats[thread() + step]);
    barrier();
  }
  most = floats[0];
  for (int i = thread(); i < n; i += 256) sum += __builtin_amdgcn_exp2f(a[i] - most);
  b[thread()] = __builtin_amdgcn_exp2f(a[thread()] - most) / sum;
}
#elif defined(HISTOGRAM)
KERNEL(word, word) {
  words[thread()] = 0;
  barrier();
  for (int i = number(); i < n; i += 512)
    __atomic_fetch_add(&words[a[i] & 255], 1, __ATOMIC_RELAXED);
  barrier();
  __atomic_fetch_add(&b[thread()], words[thread()], __ATOMIC_RELAXED);
}
#elif defined(TRANSPOSITION)
KERNEL(float, float) {
  int row = thread() >> 4, column = thread() & 15;
  floats[column * 17 + row] = a[row * n + column];
  barrier();
  b[row * n + column] = floats[row * 17 + column];
}
#elif defined(COLLATZ)
KERNEL(word, word) {
  word x = a[number()] + 1, count = 0;
  while (x != 1 && count < 50) {
    x = x & 1 ? 3 * x + 1 : x / 2;
    count++;
  }
  b[number()] = count;
}
#elif defined(BODIES)
KERNEL(float4, float4) {
  float4 me = a[number()], force = {0};
  for (int i = 0; i < n; i++) {
    float4 d = a[i] - me;
    float near = __builtin_amdgcn_rsqf(d.x * d.x + d.y * d.y + d.z * d.z + 0.01f);
    force += d * (near * near * near);
  }
  b[number()] = force;
}
#elif defined(SEARCH)
KERNEL(word, word) {
  word key = b[number()];
  int low = 0, high = n;
  while (low < high) {
    int middle = (low + high) / 2;
    if (a[middle] < key) low = middle + 1;
    else high = middle;
  }
  b[number()] = low;
}
#elif defined(CASES)
KERNEL(word, word) {
  word s = a[number()];
  for (int i = 0; i < n; i++) { s ^= s << 13; s ^= s >> 17; s ^= s << 5; }
  switch (s & 7) {
    case 0: s *= 3; break;
    case 1: s += a[s & 255]; break;
    case 2: s /= 7; break;
    case 3: s = __builtin_popcount(s); break;
    case 4: b[number() + 512] = s; break;
    default: s = ~s;
  }
  b[number()] = s;
}
#elif defined(HALVES)
KERNEL(half2, half2) {
  half2 x = a[number()], y = b[number()], z = x * y + x;
  b[number()] = (half2){z.x / (z.y + (_Float16)1), z.x - z.y};
}
#elif defined(COMPACTION)
KERNEL(word, word) {
  word x = a[number()];
  wide chosen = __builtin_amdgcn_ballot_w64(x & 1);
  word before = __builtin_amdgcn_mbcnt_hi(chosen >> 32, __builtin_amdgcn_mbcnt_lo(chosen, 0));
  word base = 0;
  if (before == 0 && (x & 1))
    base = __atomic_fetch_add(&b[0], __builtin_popcountl(chosen), __ATOMIC_RELAXED);
  base = __builtin_amdgcn_readfirstlane(base);
  if (x & 1) b[1 + ((base + before) & 511)] = x;
}
#elif defined(FUNCTIONS)
KERNEL(float, float) {
  float x = a[number()], turns = x * 0.159f;
  float wave = __builtin_amdgcn_sinf(turns) + __builtin_amdgcn_cosf(turns);
  b[number()] = wave * __builtin_amdgcn_logf(x) + __builtin_amdgcn_rcpf(x);
}
#elif defined(CHOSEN_LANE)
KERNEL(word, word) {
  word x = a[number()], lane = __builtin_amdgcn_readfirstlane(x) & 63;
  word y = __builtin_amdgcn_readlane(x, lane);
  b[number()] = y + a[__builtin_amdgcn_readfirstlane(y) & 255];
}
#elif defined(BYTES)
KERNEL(unsigned char, unsigned char) {
  int i = number();
  unsigned char x = a[i], y = a[i + 1], z = a[i + 2];
  b[i] = (x + 2 * y + z) >> 2;
  b[i + 512] = (unsigned char)(x * y) >> (z & 7);
}
#elif defined(COPIES)
KERNEL(float4, float4) {
  for (int i = 0; i < 4; i++) {
    float4 x = a[number() + i];
    b[number() + i * 512] = x;
    b[number() + (i + 4) * 512] = x * x;
  }
}
#endif
