/* Modules and their kernels. */
#pragma once
#include "runtime.h"

struct Module {
  uint32_t number;
  void *data; /* what kernels reach by addresses of their own; NULL where there is none */
  struct Function *functions;
  struct Module *next;
};

enum { MOST_ARGUMENTS = 256 };

/* As the emulator sends it: what the metadata says of a kernel; arguments by their places in the
 * kernel argument segment. */
typedef struct {
  uint32_t number, kernarg_bytes, arguments, lds_bytes, scratch_bytes, registers, max_threads;
  struct {
    uint32_t offset, size;
  } argument[MOST_ARGUMENTS];
} Description;

struct Function {
  Description is;
  char *name;
  struct Module *module;
  struct Function *next;
};

/* Whether it is one; `lock` is held. */
bool is_function(hipFunction_t function);
/* What is known of one. */
hipError_t describe(hipFunction_t function, Description *is);
/* The names of a module's kernels, each with a NUL behind it, as far as there is room. */
hipError_t kernel_names(hipModule_t module, char *names, size_t room, size_t *got);
