/* Modules, their functions, and launches, all of which are the emulator's work. */
#include "module.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct Module *modules;

static bool is_module(hipModule_t module) {
  for (struct Module *each = modules; each; each = each->next)
    if (each == module) return true;
  return false;
}

bool is_function(hipFunction_t function) {
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

/* Memory for variables and constants, at an address that the emulator is told. */
static hipError_t place_data(struct Module *module, uint64_t size) {
  hipError_t error = allocate(&module->data, size, 0, false, NULL);
  uint64_t place[] = {module->number, (uint64_t)module->data};
  if (!error) error = ask(PLACE, place, sizeof place, NULL, 0, NULL);
  if (error) {
    release(module->data, false);
    ask(UNLOAD, &module->number, sizeof module->number, NULL, 0, NULL);
  }
  return error;
}

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
  struct {
    uint32_t number, zero;
    uint64_t data_bytes;
  } loaded = {0};
  error = ask(LOAD, image, size, &loaded, sizeof loaded, &got);
  made->number = loaded.number;
  if (!error && loaded.data_bytes) error = place_data(made, loaded.data_bytes);
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
      release(module->data, false);
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

hipError_t kernel_names(hipModule_t module, char *names, size_t room, size_t *got) {
  hipError_t error = ready();
  if (error) return error;
  lock();
  error = is_module(module)
              ? ask(NAMES, &module->number, sizeof module->number, names, room, got)
              : hipErrorInvalidHandle;
  unlock();
  return error;
}

hipError_t describe(hipFunction_t function, Description *is) {
  hipError_t error = ready();
  if (error) return error;
  lock();
  if (is_function(function))
    *is = function->is;
  else
    error = hipErrorInvalidDeviceFunction;
  unlock();
  return error;
}

hipError_t any_function(hipFunction_t *function, const void *named) {
  hipError_t error = ready();
  if (error) return error;
  lock();
  *function = (hipFunction_t)named;
  bool found = is_function(*function);
  unlock();
  return found ? hipSuccess : function_of(function, named);
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
hipError_t load_file(hipModule_t *module, const char *path) {
  if (!module || !path) return hipErrorInvalidValue;
  FILE *file = fopen(path, "rb");
  if (!file) return hipErrorFileNotFound;
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
  return error;
}
API hipError_t hipModuleLoad(hipModule_t *module, const char *path) {
  return done(load_file(module, path));
}
API hipError_t hipModuleUnload(hipModule_t module) { return done(unload(module)); }
API hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name) {
  return done(find_function(function, module, name));
}
API hipError_t hipModuleGetFunctionCount(unsigned *count, hipModule_t module) {
  static const size_t ROOM = 1 << 20;
  char *names = malloc(ROOM);
  size_t got = 0;
  hipError_t error = count && names ? kernel_names(module, names, ROOM, &got)
                                    : hipErrorInvalidValue;
  unsigned found = 0;
  for (size_t i = 0; !error && i < got; i++) found += !names[i];
  if (!error) *count = found;
  free(names);
  return done(error);
}
hipError_t find_variable(void **address, size_t *size, hipModule_t module, const char *name) {
  if (!name || !*name) return hipErrorInvalidValue;
  hipError_t error = ready();
  if (error) return error;
  uint64_t found[2] = {0};
  size_t got = 0;
  lock();
  error = is_module(module) ? ask2(VARIABLE, &module->number, sizeof module->number, name,
                                   strlen(name), found, sizeof found, &got)
                            : hipErrorInvalidHandle;
  unlock();
  if (error) return error;
  if (address) *address = (void *)found[0];
  if (size) *size = found[1];
  return hipSuccess;
}
API hipError_t hipModuleGetGlobal(void **address, size_t *size, hipModule_t module,
                                  const char *name) {
  return done(find_variable(address, size, module, name));
}
