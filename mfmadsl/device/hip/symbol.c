/* Functions of this library by their names, for programs that do not link with it. */
#include "runtime.h"

#include <dlfcn.h>
#include <string.h>

enum { FOUND = 0, NOT_FOUND = 1 };

static void *named(const char *name) {
  Dl_info own;
  if (!dladdr((void *)named, &own)) return NULL;
  void *library = dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  void *found = library ? dlsym(library, name) : NULL;
  if (library) dlclose(library);
  return found;
}

API hipError_t hipGetProcAddress(const char *name, void **function, int version, uint64_t flags,
                                 int *status) {
  if (!name || !function || flags > 2) return done(hipErrorInvalidValue);
  bool newer = version >= 600 && !strcmp(name, "hipGetDeviceProperties");
  *function = named(newer ? "hipGetDevicePropertiesR0600" : name);
  if (status) *status = *function ? FOUND : NOT_FOUND;
  if (!*function) explain("hipGetProcAddress: `%s` is not emulated", name);
  return done(*function ? hipSuccess : hipErrorInvalidValue);
}
/* As that, with numbers of its own for what was found. */
API hipError_t hipGetDriverEntryPoint(const char *name, void **function, unsigned long long flags,
                                      int *status) {
  return hipGetProcAddress(name, function, 700, flags, status);
}
PER_THREAD(hipGetDriverEntryPoint);
