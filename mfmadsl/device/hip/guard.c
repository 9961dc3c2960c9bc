/* Memory that the host and kernels share: where work that the host has not waited for reads or
   writes whole pages, the host's own accesses are noticed, and told at the next call.

   Such a page is taken from this process until the host has waited; whoever touches it before gets
   it back in the handler of the signal. */
#include "stream.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, MOST = 256, MOST_TOUCHED = 64 };

/* As the emulator sends it: whole pages, from which the host may read only, or nothing. */
typedef struct {
  uint64_t start, end, readable;
} Guarded;

static Guarded guarded[MOST];
static _Atomic size_t count;
static bool shared, installed;
static struct sigaction before;
static _Atomic int ours; /* copies of this library's own */
static _Atomic uint64_t touched[MOST_TOUCHED];
static _Atomic size_t touches;
static size_t told;

void memory_is_shared(void) { shared = true; }
void host_access_begins(void) { ours++; }
void host_access_ends(void) { ours--; }

static void on_touch(int number, siginfo_t *info, void *context) {
  (void)number, (void)context;
  uint64_t address = (uint64_t)info->si_addr, page = address / PAGE * PAGE;
  for (size_t i = 0; i < count; i++)
    if (guarded[i].start <= page && page < guarded[i].end) {
      mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE);
      size_t place = ours ? MOST_TOUCHED : touches++;
      if (place < MOST_TOUCHED) touched[place] = address;
      return;
    }
  if (within((void *)address)) /* the list is about to change */
    mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE);
  else
    sigaction(SIGSEGV, &before, NULL); /* it happens again, and is another's to answer */
}

static void install(void) {
  struct sigaction action = {.sa_sigaction = on_touch, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigemptyset(&action.sa_mask);
  installed = !sigaction(SIGSEGV, &action, &before);
}

static bool listed(const Guarded *list, size_t size, const Guarded *wanted) {
  for (size_t i = 0; i < size; i++)
    if (!memcmp(&list[i], wanted, sizeof *wanted)) return true;
  return false;
}

/* Tell what has been touched since the last call. */
void tell_touches(void) {
  if (!shared || told == touches) return;
  lock();
  for (; told < touches && told < MOST_TOUCHED; told++)
    tell_touch(touched[told]);
  if (told >= MOST_TOUCHED) told = touches; /* enough has been told */
  unlock();
}

void guard(void) {
  if (!shared || !device.sanitizes) return;
  static Guarded wanted[MOST];
  size_t got = 0;
  lock();
  if (ask(GUARD, NULL, 0, wanted, sizeof wanted, &got)) got = 0;
  size_t asked = got / sizeof *wanted, had = count;
  if (asked && !installed) install();
  for (size_t i = 0; i < had; i++)
    if (!listed(wanted, asked, &guarded[i]))
      mprotect((void *)guarded[i].start, guarded[i].end - guarded[i].start,
               PROT_READ | PROT_WRITE);
  memcpy(guarded, wanted, asked * sizeof *wanted);
  count = asked;
  for (size_t i = 0; i < asked && installed; i++)
    mprotect((void *)wanted[i].start, wanted[i].end - wanted[i].start,
             wanted[i].readable ? PROT_READ : PROT_NONE);
  unlock();
}

__attribute__((destructor)) static void at_end(void) {
  if (device.sanitizes) tell_touches();
}
