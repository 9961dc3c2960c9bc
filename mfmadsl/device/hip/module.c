/* Modules, their functions, and launches, all of which are the emulator's work. */
#include "runtime.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Module {
  uint32_t number;
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

static struct Module *modules;

static bool is_module(hipModule_t module) {
  for (struct Module *each = modules; each; each = each->next)
    if (each == module) return true;
  return false;
}

static bool is_function(hipFunction_t function) {
  for (struct Module *each = modules; each; each = each->next)
    for (struct Function *one = each->functions; one; one = one->next)
      if (one == function) return true;
  return false;
}

/* An image comes without its size: an ELF file ends with its last section or with the table of
 * them. */
static size_t elf_bytes(const char *image, size_t limit) {
  Elf64_Ehdr header;
  memcpy(&header, image, sizeof header);
  size_t end, table = (size_t)header.e_shnum * header.e_shentsize;
  if (__builtin_add_overflow(header.e_shoff, table, &end) || end > limit) return SIZE_MAX;
  for (unsigned i = 0; header.e_shentsize == sizeof(Elf64_Shdr) && i < header.e_shnum; i++) {
    Elf64_Shdr section;
    memcpy(&section, image + header.e_shoff + (size_t)i * sizeof section, sizeof section);
    size_t last = section.sh_type == SHT_NOBITS ? 0 : section.sh_size;
    if (__builtin_add_overflow(section.sh_offset, last, &last)) return SIZE_MAX;
    if (last > end) end = last;
  }
  return end;
}

/* A bundle of clang's: its name, how many entries, and of each offset, size and target. */
static const char BUNDLE[] = "__CLANG_OFFLOAD_BUNDLE__";
static size_t bundle_bytes(const char *image, size_t limit) {
  uint64_t entries, entry[3];
  size_t at = strlen(BUNDLE), end = 0, last;
  memcpy(&entries, image + at, sizeof entries);
  at += sizeof entries;
  for (uint64_t i = 0; i < entries; i++) {
    if (at > limit || limit - at < sizeof entry) return SIZE_MAX;
    memcpy(entry, image + at, sizeof entry);
    if (__builtin_add_overflow(entry[0], entry[1], &last)) return SIZE_MAX;
    if (__builtin_add_overflow(at + sizeof entry, entry[2], &at)) return SIZE_MAX;
    if (last > end) end = last;
  }
  return end > at ? end : at;
}

/* Bytes of an image of which up to `limit` can be read; more than that for one that was cut off. */
static size_t image_bytes(const char *image, size_t limit) {
  if (!memcmp(image, ELFMAG, SELFMAG))
    return image[EI_CLASS] == ELFCLASS64 ? elf_bytes(image, limit) : SELFMAG + 1;
  if (!memcmp(image, BUNDLE, strlen(BUNDLE))) return bundle_bytes(image, limit);
  return 4; /* whatever it is, the emulator says so */
}

enum { LARGEST_IMAGE = 1 << 30 }; /* bytes; an image that was cut off may claim any size */

hipError_t load_image(hipModule_t *module, const void *image) {
  if (!module || !image) return hipErrorInvalidValue;
  *module = NULL;
  hipError_t error = ready();
  if (error) return error;
  size_t size = image_bytes(image, LARGEST_IMAGE);
  if (size > LARGEST_IMAGE) return hipErrorInvalidImage;
  struct Module *made = calloc(1, sizeof *made);
  if (!made) return hipErrorOutOfMemory;
  lock();
  size_t got = 0;
  error = ask(LOAD, image, size, &made->number, sizeof made->number, &got);
  if (error) {
    free(made);
  } else {
    made->next = modules;
    *module = modules = made;
  }
  unlock();
  return error;
}

hipError_t unload(hipModule_t module) {
  hipError_t error = ready();
  if (error) return error;
  lock();
  error = hipErrorInvalidHandle;
  for (struct Module **place = &modules; *place; place = &(*place)->next)
    if (*place == module) {
      *place = module->next;
      error = ask(UNLOAD, &module->number, sizeof module->number, NULL, 0, NULL);
      for (struct Function *each = module->functions, *next; each; each = next) {
        next = each->next;
        free(each->name);
        free(each);
      }
      free(module);
      break;
    }
  unlock();
  return error;
}

hipError_t find_function(hipFunction_t *function, hipModule_t module, const char *name) {
  if (!function || !name) return hipErrorInvalidValue;
  *function = NULL;
  hipError_t error = ready();
  if (error) return error;
  lock();
  struct Function *found = NULL;
  error = is_module(module) ? hipSuccess : hipErrorInvalidHandle;
  for (struct Function *each = error ? NULL : module->functions; each && !found; each = each->next)
    if (!strcmp(each->name, name)) found = each;
  if (!error && !found) {
    found = calloc(1, sizeof *found);
    char *copy = strdup(name);
    size_t got = 0;
    error = !found || !copy ? hipErrorOutOfMemory
                            : ask2(FUNCTION, &module->number, sizeof module->number, name,
                                   strlen(name), &found->is, sizeof found->is, &got);
    if (error) {
      free(found);
      free(copy);
    } else {
      found->name = copy, found->module = module, found->next = module->functions;
      module->functions = found;
    }
  }
  if (!error) *function = found;
  unlock();
  return error;
}

API hipError_t hipModuleLoadData(hipModule_t *module, const void *image) {
  return done(load_image(module, image));
}
API hipError_t hipModuleLoadDataEx(hipModule_t *module, const void *image, unsigned count,
                                   int *options, void **values) {
  (void)count, (void)options, (void)values; /* of a compiler that is not asked here */
  return done(load_image(module, image));
}
API hipError_t hipModuleLoadFatBinary(hipModule_t *module, const void *image) {
  return done(load_image(module, image));
}
API hipError_t hipModuleLoad(hipModule_t *module, const char *path) {
  if (!module || !path) return done(hipErrorInvalidValue);
  FILE *file = fopen(path, "rb");
  if (!file) return done(hipErrorFileNotFound);
  char *image = NULL;
  size_t size = 0, room = 0, got;
  do {
    if (size == room) {
      char *more = realloc(image, room = room ? 2 * room : 1 << 16);
      if (!more) break;
      image = more;
    }
    size += got = fread(image + size, 1, room - size, file);
  } while (got);
  fclose(file);
  /* A file that was cut off would be read past its end. */
  bool whole = size > sizeof(Elf64_Ehdr) && size >= image_bytes(image, size);
  hipError_t error = whole ? load_image(module, image) : hipErrorInvalidImage;
  free(image);
  return done(error);
}
API hipError_t hipModuleUnload(hipModule_t module) { return done(unload(module)); }
API hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name) {
  return done(find_function(function, module, name));
}
API hipError_t hipModuleGetGlobal(void **address, size_t *size, hipModule_t module,
                                  const char *name) {
  (void)address, (void)size, (void)module;
  explain("hipModuleGetGlobal: `%s`: variables of modules are not emulated", name ? name : "");
  return done(name ? hipErrorNotFound : hipErrorInvalidValue);
}

API hipError_t hipFuncGetAttribute(int *value, int attribute, hipFunction_t function) {
  enum { MAX_THREADS = 0, SHARED = 1, CONSTANT = 2, LOCAL = 3, REGISTERS = 4, MAX_DYNAMIC = 8 };
  hipError_t error = value ? ready() : hipErrorInvalidValue;
  if (error) return done(error);
  lock();
  if (!is_function(function))
    error = hipErrorInvalidDeviceFunction;
  else
    switch (attribute) {
    case MAX_THREADS: *value = (int)function->is.max_threads; break;
    case SHARED: *value = (int)function->is.lds_bytes; break;
    case CONSTANT: *value = 0; break;
    case LOCAL: *value = (int)function->is.scratch_bytes; break;
    case REGISTERS: *value = (int)function->is.registers; break;
    case MAX_DYNAMIC: *value = (int)(device.lds_bytes - function->is.lds_bytes); break;
    default: error = hipErrorInvalidValue;
    }
  unlock();
  return done(error);
}

/* The kernel argument segment, from pointers to the values or from the caller's own buffer. */
static hipError_t gather(const Description *is, char *segment, void **values, void **extra) {
  enum { END = 3, BUFFER = 1, BUFFER_SIZE = 2 };
  memset(segment, 0, is->kernarg_bytes);
  if (values && extra) return hipErrorInvalidValue;
  if (extra) {
    const void *buffer = NULL;
    size_t size = 0;
    for (; (uintptr_t)*extra != END; extra += 2) {
      if ((uintptr_t)*extra == BUFFER)
        buffer = extra[1];
      else if ((uintptr_t)*extra == BUFFER_SIZE)
        size = *(size_t *)extra[1];
      else
        return hipErrorInvalidValue;
    }
    size_t needed = 0;
    for (uint32_t i = 0; i < is->arguments; i++)
      if (is->argument[i].offset + is->argument[i].size > needed)
        needed = is->argument[i].offset + is->argument[i].size;
    if (size < needed || (needed && !buffer)) {
      explain("a launch with %zu bytes of arguments: the kernel takes %zu", size, needed);
      return hipErrorInvalidValue;
    }
    if (needed) memcpy(segment, buffer, needed);
    return hipSuccess;
  }
  if (is->arguments && !values) return hipErrorInvalidValue;
  for (uint32_t i = 0; i < is->arguments; i++) {
    if (!values[i]) return hipErrorInvalidValue;
    memcpy(segment + is->argument[i].offset, values[i], is->argument[i].size);
  }
  return hipSuccess;
}

/* As the emulator gets it; the list of allocations only where it is not the one that it has. */
typedef struct {
  uint32_t function, grid[3], block[3], lds_bytes;
  uint64_t version, stream;
  uint32_t kernarg_bytes, allocations;
} Start;

static hipError_t run(const Description *is, dim3 grid, dim3 block, uint32_t lds_bytes,
                      hipStream_t stream, const char *segment) {
  static uint64_t sent = UINT64_MAX;
  size_t count;
  uint64_t version, nanoseconds = 0;
  const Allocation *known = allocations(&count, &version);
  if (sent == version) count = 0;
  Start head = {is->number, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, lds_bytes,
                version,    (uint64_t)stream,         is->kernarg_bytes,           (uint32_t)count};
  size_t size = sizeof head + is->kernarg_bytes, got = 0;
  char *message = malloc(size + count * 2 * sizeof(uint64_t));
  if (!message) return hipErrorOutOfMemory;
  memcpy(message, &head, sizeof head);
  memcpy(message + sizeof head, segment, is->kernarg_bytes);
  for (size_t i = 0; i < count; i++, size += 2 * sizeof(uint64_t))
    memcpy(message + size, &known[i], 2 * sizeof(uint64_t)); /* address and size */
  hipError_t error = ask(LAUNCH, message, size, &nanoseconds, sizeof nanoseconds, &got);
  free(message);
  if (!error || error == hipErrorLaunchFailure) sent = version;
  spend(nanoseconds);
  /* It is told where the program waits for the launch, as of a launch that runs on its own. */
  if (error == hipErrorLaunchFailure) set_fault(error), error = hipSuccess;
  return error;
}

hipError_t launch(hipFunction_t function, dim3 grid, dim3 block, uint32_t lds_bytes,
                  hipStream_t stream, void **values, void **extra) {
  hipError_t error = ready();
  if (error) return error;
  if (!is_stream(stream)) return hipErrorInvalidHandle;
  if (!grid.x || !grid.y || !grid.z || !block.x || !block.y || !block.z)
    return hipErrorInvalidConfiguration;
  lock();
  char *segment = NULL;
  if (!is_function(function))
    error = hipErrorInvalidDeviceFunction;
  else if ((error = fault()))
    ;
  else if ((uint64_t)block.x * block.y * block.z > function->is.max_threads) {
    explain("%s: a block of %u x %u x %u threads, of %u at most", function->name, block.x, block.y,
            block.z, function->is.max_threads);
    error = hipErrorInvalidConfiguration;
  } else if (lds_bytes > device.lds_bytes - function->is.lds_bytes) {
    explain("%s: %u bytes of LDS beside its own %u, of %lld", function->name, lds_bytes,
            function->is.lds_bytes, (long long)device.lds_bytes);
    error = hipErrorLaunchOutOfResources;
  } else if (!(segment = malloc(function->is.kernarg_bytes + 1)))
    error = hipErrorOutOfMemory;
  else if (!(error = gather(&function->is, segment, values, extra)))
    error = run(&function->is, grid, block, lds_bytes, stream, segment);
  free(segment);
  unlock();
  return error;
}

API hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned gx, unsigned gy, unsigned gz,
                                     unsigned bx, unsigned by, unsigned bz, unsigned lds_bytes,
                                     hipStream_t stream, void **values, void **extra) {
  return done(
      launch(function, (dim3){gx, gy, gz}, (dim3){bx, by, bz}, lds_bytes, stream, values, extra));
}
API hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t function, unsigned gx, unsigned gy,
                                                unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                                unsigned lds_bytes, hipStream_t stream,
                                                void **values) {
  return done(
      launch(function, (dim3){gx, gy, gz}, (dim3){bx, by, bz}, lds_bytes, stream, values, NULL));
}

typedef struct {
  dim3 grid, block;
  unsigned lds_bytes;
  hipStream_t stream;
  void *attributes;
  unsigned count;
} LaunchConfiguration;
API hipError_t hipDrvLaunchKernelEx(const LaunchConfiguration *how, hipFunction_t function,
                                    void **values, void **extra) {
  if (!how) return done(hipErrorInvalidValue);
  return done(launch(function, how->grid, how->block, how->lds_bytes, how->stream, values, extra));
}

/* Its grid is in threads, and need not be whole blocks: those that are not are refused. */
API hipError_t hipExtModuleLaunchKernel(hipFunction_t function, unsigned gx, unsigned gy,
                                        unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                        size_t lds_bytes, hipStream_t stream, void **values,
                                        void **extra, hipEvent_t before, hipEvent_t after,
                                        unsigned flags) {
  hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream);
  (void)flags;
  if (!bx || !by || !bz || lds_bytes > UINT32_MAX) return done(hipErrorInvalidConfiguration);
  if (gx % bx || gy % by || gz % bz) {
    explain("hipExtModuleLaunchKernel: %u x %u x %u threads are no whole blocks of %u x %u x %u",
            gx, gy, gz, bx, by, bz);
    return done(hipErrorNotSupported);
  }
  hipError_t error = before ? hipEventRecord(before, stream) : hipSuccess;
  if (!error)
    error = launch(function, (dim3){gx / bx, gy / by, gz / bz}, (dim3){bx, by, bz},
                   (uint32_t)lds_bytes, stream, values, extra);
  if (!error && after) error = hipEventRecord(after, stream);
  return done(error);
}
