/* What a program that hipcc compiled calls by itself: it registers its code objects and kernels
   when it starts, and launches them by the addresses of their stubs. */
#include "runtime.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { FAT = 0x48495046 }; /* "HIPF" */
typedef struct {
  uint32_t magic, version;
  const void *image;
  void *unused;
} Wrapper;

typedef struct Program {
  const Wrapper *wrapper;
  hipModule_t module; /* loaded with its first launch */
  struct Program *next;
} Program;

typedef struct Kernel {
  const void *stub;
  char *name;
  Program *program;
  hipFunction_t function;
  struct Kernel *next;
} Kernel;

/* A variable of the device, by the one of the host that stands for it. */
typedef struct Variable {
  const void *shadow;
  char *name;
  Program *program;
  struct Variable *next;
} Variable;

static Program *programs;
static Kernel *kernels;
static Variable *variables;
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER; /* no image twice */

API void **__hipRegisterFatBinary(const void *wrapper) {
  Program *made = calloc(1, sizeof *made);
  if (!made) abort(); /* a program's start has nobody to tell */
  lock();
  made->wrapper = wrapper, made->next = programs;
  programs = made;
  unlock();
  return (void **)made;
}

API void __hipRegisterFunction(void **program, const void *stub, char *device_name,
                               const char *name, unsigned threads, void *tid, void *bid,
                               void *block, void *grid, int *size) {
  (void)device_name, (void)threads, (void)tid, (void)bid, (void)block, (void)grid, (void)size;
  Kernel *made = calloc(1, sizeof *made);
  if (!made || !(made->name = strdup(name))) abort();
  lock();
  made->stub = stub, made->program = (Program *)program, made->next = kernels;
  kernels = made;
  unlock();
}

API void __hipRegisterVar(void **program, void *shadow, char *name, char *device_name, int external,
                          size_t size, int constant, int global) {
  (void)name, (void)external, (void)size, (void)constant, (void)global;
  Variable *made = calloc(1, sizeof *made);
  if (!made || !(made->name = strdup(device_name))) abort();
  lock();
  made->shadow = shadow, made->program = (Program *)program, made->next = variables;
  variables = made;
  unlock();
}

API void __hipUnregisterFatBinary(void **handle) {
  Program *program = (Program *)handle;
  hipModule_t module = NULL;
  lock();
  for (Kernel **place = &kernels, *each; (each = *place);)
    if (each->program == program) {
      *place = each->next;
      free(each->name);
      free(each);
    } else
      place = &each->next;
  for (Variable **place = &variables, *each; (each = *place);)
    if (each->program == program) {
      *place = each->next;
      free(each->name);
      free(each);
    } else
      place = &each->next;
  for (Program **place = &programs; *place; place = &(*place)->next)
    if (*place == program) {
      *place = program->next;
      module = program->module;
      free(program);
      break;
    }
  unlock();
  if (module) unload(module);
}

/* The module of a program, loaded when it is first asked for. */
static hipError_t module_of(hipModule_t *module, Program *program) {
  lock();
  *module = program->module;
  unlock();
  if (*module) return hipSuccess;
  if (program->wrapper->magic != FAT) return hipErrorInvalidImage;
  hipError_t error = load_image(module, program->wrapper->image);
  lock();
  if (!error) program->module = *module;
  unlock();
  return error;
}

static hipError_t loaded_function(hipFunction_t *function, const void *stub) {
  lock();
  Kernel *kernel = kernels;
  while (kernel && kernel->stub != stub) kernel = kernel->next;
  *function = kernel ? kernel->function : NULL;
  unlock();
  if (!kernel) return hipErrorInvalidDeviceFunction;
  if (*function) return hipSuccess;
  hipModule_t module;
  hipError_t error = module_of(&module, kernel->program);
  if (!error) error = find_function(function, module, kernel->name);
  lock();
  if (!error) kernel->function = *function;
  unlock();
  return error;
}

hipError_t find_symbol(void **address, size_t *size, const void *shadow) {
  hipError_t error = ready();
  if (error) return error;
  pthread_mutex_lock(&loading);
  lock();
  Variable *variable = variables;
  while (variable && variable->shadow != shadow) variable = variable->next;
  unlock();
  hipModule_t module;
  error = variable ? module_of(&module, variable->program) : hipErrorInvalidSymbol;
  if (!error) error = find_variable(address, size, module, variable->name);
  pthread_mutex_unlock(&loading);
  return error;
}

hipError_t function_of(hipFunction_t *function, const void *stub) {
  pthread_mutex_lock(&loading);
  hipError_t error = loaded_function(function, stub);
  pthread_mutex_unlock(&loading);
  return error;
}

API hipError_t hipLaunchKernel(const void *stub, dim3 grid, dim3 block, void **values,
                               size_t lds_bytes, hipStream_t stream) {
  hipFunction_t function;
  hipError_t error =
      lds_bytes > UINT32_MAX ? hipErrorInvalidConfiguration : function_of(&function, stub);
  if (!error) error = launch(function, grid, block, (uint32_t)lds_bytes, stream, values, NULL);
  return done(error);
}
PER_THREAD(hipLaunchKernel);
API hipError_t hipLaunchCooperativeKernel(const void *stub, dim3 grid, dim3 block, void **values,
                                          unsigned lds_bytes, hipStream_t stream) {
  return hipLaunchKernel(stub, grid, block, values, lds_bytes, stream);
}
PER_THREAD(hipLaunchCooperativeKernel);
API hipError_t hipGetFuncBySymbol(hipFunction_t *function, const void *stub) {
  return done(function ? function_of(function, stub) : hipErrorInvalidValue);
}

/* `kernel<<<grid, block>>>(...)` pushes, and the stub pops. */
static _Thread_local struct {
  dim3 grid, block;
  size_t lds_bytes;
  hipStream_t stream;
} pushed;
API hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t lds_bytes,
                                          hipStream_t stream) {
  pushed.grid = grid, pushed.block = block, pushed.lds_bytes = lds_bytes, pushed.stream = stream;
  return hipSuccess;
}
API hipError_t __hipPopCallConfiguration(dim3 *grid, dim3 *block, size_t *lds_bytes,
                                         hipStream_t *stream) {
  *grid = pushed.grid, *block = pushed.block, *lds_bytes = pushed.lds_bytes,
  *stream = pushed.stream;
  return hipSuccess;
}
