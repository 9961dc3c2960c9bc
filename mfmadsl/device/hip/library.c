/* Libraries: modules by another name, whose kernels are named before they are launched. */
#include "module.h"

#include <stdlib.h>
#include <string.h>

typedef hipModule_t hipLibrary_t;
typedef hipFunction_t hipKernel_t;

API hipError_t hipLibraryLoadData(hipLibrary_t *library, const void *image, int *jit,
                                  void **jit_values, unsigned jit_count, int *options,
                                  void **values, unsigned count) {
  (void)jit, (void)jit_values, (void)jit_count; /* of a compiler that is not asked here */
  (void)options, (void)values, (void)count;
  return done(load_image(library, image));
}
API hipError_t hipLibraryLoadFromFile(hipLibrary_t *library, const char *path, int *jit,
                                      void **jit_values, unsigned jit_count, int *options,
                                      void **values, unsigned count) {
  (void)jit, (void)jit_values, (void)jit_count;
  (void)options, (void)values, (void)count;
  return done(load_file(library, path));
}
API hipError_t hipLibraryUnload(hipLibrary_t library) { return done(unload(library)); }
API hipError_t hipLibraryGetKernel(hipKernel_t *kernel, hipLibrary_t library, const char *name) {
  return done(find_function(kernel, library, name));
}
hipError_t hipModuleGetFunctionCount(unsigned *count, hipModule_t module);
API hipError_t hipLibraryGetKernelCount(unsigned *count, hipLibrary_t library) {
  return hipModuleGetFunctionCount(count, library);
}
API hipError_t hipLibraryEnumerateKernels(hipKernel_t *kernels, unsigned room,
                                          hipLibrary_t library) {
  static const size_t ROOM = 1 << 20;
  char *names = kernels ? malloc(ROOM) : NULL;
  if (!names) return done(kernels ? hipErrorOutOfMemory : hipErrorInvalidValue);
  size_t got = 0;
  hipError_t error = kernel_names(library, names, ROOM, &got);
  unsigned found = 0;
  for (const char *name = names; !error && name < names + got && found < room;
       name += strlen(name) + 1)
    error = find_function(&kernels[found++], library, name);
  free(names);
  return done(error);
}
API hipError_t hipKernelGetLibrary(hipLibrary_t *library, hipKernel_t kernel) {
  Description is;
  hipError_t error = library ? describe(kernel, &is) : hipErrorInvalidValue;
  if (!error) *library = kernel->module;
  return done(error);
}
API hipError_t hipKernelGetName(const char **name, hipKernel_t kernel) {
  Description is;
  hipError_t error = name ? describe(kernel, &is) : hipErrorInvalidValue;
  if (!error) *name = kernel->name;
  return done(error);
}
API hipError_t hipKernelGetFunction(hipFunction_t *function, hipKernel_t kernel) {
  Description is;
  hipError_t error = function ? describe(kernel, &is) : hipErrorInvalidValue;
  if (!error) *function = kernel;
  return done(error);
}
