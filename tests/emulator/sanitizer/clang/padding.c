// Structures with bytes that nobody writes, stored by members and copied whole.

typedef struct { int a; char c; } Small;
typedef struct { double a; int b; } Wide;
#define GLOBAL __attribute__((address_space(1)))
#define KERNEL(T) \
  __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(64, 64))) void kernel(GLOBAL T *o, int k)

static int thread(void) { return __builtin_amdgcn_workitem_id_x(); }

#if defined(ONE)
KERNEL(Small) {
  Small s;
  s.a = thread(), s.c = (char)k;
  o[thread()] = s;
}
#elif defined(CHOSEN)
KERNEL(Small) {
  Small s[4];
  for (int i = 0; i < 4; i++) s[i].a = thread() * i, s[i].c = (char)(k + i);
  o[thread()] = s[(thread() * k) & 3];
}
#elif defined(WIDE)
KERNEL(Wide) {
  Wide s[4];
  for (int i = 0; i < 4; i++) s[i].a = thread() * i, s[i].b = k + i;
  o[thread()] = s[(thread() * k) & 3];
}
#elif defined(AGAIN)  // from memory to memory, whose padding stays undefined
KERNEL(Small) {
  o[thread()].a = k, o[thread()].c = 1;
  __builtin_amdgcn_s_waitcnt(0);
  Small s = *(volatile GLOBAL Small *)&o[thread()];
  o[64 + thread()] = s;
}
#elif defined(USED)  // the bytes of padding are added: a fault
KERNEL(Small) {
  Small s[4];
  for (int i = 0; i < 4; i++) s[i].a = thread() * i, s[i].c = (char)(k + i);
  Small got = s[(thread() * k) & 3];
  int words[2];
  __builtin_memcpy(words, &got, 8);
  o[thread()].a = words[0] + words[1], o[thread()].c = 0;
}
#elif defined(NEVER)  // an element that nobody wrote is no padding
KERNEL(Small) {
  Small s[4];
  for (int i = 0; i < 3; i++) s[i].a = thread() * i, s[i].c = (char)(k + i);
  o[thread()] = s[(thread() * k) & 3];
}
#endif
