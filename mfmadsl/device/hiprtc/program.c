/* HIP's compiler of programs that run: the interface of libhiprtc.so (hip/hiprtc.h, ROCm 6 and 7).

   Sources go to the emulator, which has a clang compile them (`mfmadsl/device/compiler.py`), on a
   connection for each program; `connection.c` of the runtime says what requests and replies are. */
#include "../hip/channel.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

typedef enum {
  HIPRTC_SUCCESS = 0,
  HIPRTC_ERROR_OUT_OF_MEMORY = 1,
  HIPRTC_ERROR_PROGRAM_CREATION_FAILURE = 2,
  HIPRTC_ERROR_INVALID_INPUT = 3,
  HIPRTC_ERROR_INVALID_PROGRAM = 4,
  HIPRTC_ERROR_INVALID_OPTION = 5,
  HIPRTC_ERROR_COMPILATION = 6,
  HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE = 7,
  HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION = 8,
  HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION = 9,
  HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID = 10,
  HIPRTC_ERROR_INTERNAL_ERROR = 11,
  HIPRTC_ERROR_LINKING = 100,
} hiprtcResult;

enum { COMPILE = 12 }; /* as `protocol.py` has it */

typedef struct {
  uint32_t count, size;
  char *bytes;
} Texts; /* each with its size before it, a word, and a NUL behind it that does not count */

typedef struct {
  Texts given, names; /* the source, its name and its headers; and expressions */
  uint32_t headers;
  char *reply;
  const char *log, *code, **lowered;
  uint32_t log_size, code_size;
  bool compiled; /* or refused: asked for, once */
} Program;
typedef Program *hiprtcProgram;

static bool add(Texts *to, const char *text) {
  size_t size = strlen(text);
  if (size > INT32_MAX || to->size + size + 5 > INT32_MAX) return false;
  char *bytes = realloc(to->bytes, to->size + size + 5);
  if (!bytes) return false;
  uint32_t word = (uint32_t)size;
  memcpy(bytes + to->size, &word, 4);
  memcpy(bytes + to->size + 4, text, size + 1);
  to->bytes = bytes, to->size += (uint32_t)size + 5, to->count++;
  return true;
}

/* What the emulator answers, in memory of its own; NULL where there is none. */
static char *asked(Program *program, const Texts *options, uint32_t *status, uint32_t *size) {
  const Texts *parts[] = {&program->given, options, &program->names};
  uint32_t counts[3] = {program->headers, options->count, program->names.count};
  uint32_t request[2] = {COMPILE, sizeof counts}, answer[2];
  for (int i = 0; i < 3; i++) request[1] += parts[i]->size;
  int channel = open_channel();
  if (channel < 0) return NULL;
  bool sent = put(channel, request, sizeof request) && put(channel, counts, sizeof counts);
  for (int i = 0; sent && i < 3; i++) sent = put(channel, parts[i]->bytes, parts[i]->size);
  char *reply = NULL;
  if (sent && get(channel, answer, sizeof answer)) reply = malloc(answer[1] + 1u);
  if (reply && !get(channel, reply, answer[1])) free(reply), reply = NULL;
  if (reply) *status = answer[0], *size = answer[1];
  close(channel);
  return reply;
}

/* The next text of a reply, and where the one behind it begins. */
static const char *text_at(const char **at, uint32_t *size) {
  memcpy(size, *at, 4);
  const char *text = *at + 4;
  *at = text + *size + 1;
  return text;
}

API const char *hiprtcGetErrorString(hiprtcResult result) {
  static const char *const names[] = {
      "HIPRTC_SUCCESS",
      "HIPRTC_ERROR_OUT_OF_MEMORY",
      "HIPRTC_ERROR_PROGRAM_CREATION_FAILURE",
      "HIPRTC_ERROR_INVALID_INPUT",
      "HIPRTC_ERROR_INVALID_PROGRAM",
      "HIPRTC_ERROR_INVALID_OPTION",
      "HIPRTC_ERROR_COMPILATION",
      "HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE",
      "HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
      "HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
      "HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
      "HIPRTC_ERROR_INTERNAL_ERROR",
  };
  if (result == HIPRTC_ERROR_LINKING) return "HIPRTC_ERROR_LINKING";
  return result < sizeof names / sizeof *names ? names[result] : "Invalid HIPRTC error code";
}
API hiprtcResult hiprtcVersion(int *major, int *minor) {
  if (!major || !minor) return HIPRTC_ERROR_INVALID_INPUT;
  *major = 9, *minor = 0; /* as ROCm's own says, of all its versions */
  return HIPRTC_SUCCESS;
}

static void forget(Program *program) {
  free(program->given.bytes), free(program->names.bytes), free(program->reply);
  free(program->lowered), free(program);
}

API hiprtcResult hiprtcCreateProgram(hiprtcProgram *program, const char *source, const char *name,
                                     int headers, const char *const *texts,
                                     const char *const *names) {
  if (!program || !source) return HIPRTC_ERROR_INVALID_INPUT;
  if (headers < 0 || (headers && (!texts || !names))) return HIPRTC_ERROR_INVALID_INPUT;
  Program *made = calloc(1, sizeof *made);
  if (!made) return HIPRTC_ERROR_OUT_OF_MEMORY;
  bool kept = add(&made->given, source) && add(&made->given, name ? name : "");
  for (int i = 0; kept && i < headers; i++)
    kept = texts[i] && names[i] && add(&made->given, texts[i]) && add(&made->given, names[i]);
  if (!kept) {
    forget(made);
    return HIPRTC_ERROR_PROGRAM_CREATION_FAILURE;
  }
  made->headers = (uint32_t)headers;
  *program = made;
  return HIPRTC_SUCCESS;
}
API hiprtcResult hiprtcDestroyProgram(hiprtcProgram *program) {
  if (!program || !*program) return HIPRTC_ERROR_INVALID_INPUT;
  forget(*program);
  *program = NULL;
  return HIPRTC_SUCCESS;
}
API hiprtcResult hiprtcAddNameExpression(hiprtcProgram program, const char *expression) {
  if (!program || !expression) return HIPRTC_ERROR_INVALID_INPUT;
  if (program->compiled) return HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
  return add(&program->names, expression) ? HIPRTC_SUCCESS : HIPRTC_ERROR_OUT_OF_MEMORY;
}

/* A reply is the log, the code object, and the names of the expressions. */
static hiprtcResult kept(Program *program, uint32_t status) {
  const char *at = program->reply;
  uint32_t ignored;
  program->log = text_at(&at, &program->log_size);
  if (status) return HIPRTC_ERROR_COMPILATION;
  program->code = text_at(&at, &program->code_size);
  if (!program->names.count) return HIPRTC_SUCCESS;
  program->lowered = calloc(program->names.count, sizeof *program->lowered);
  if (!program->lowered) return HIPRTC_ERROR_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < program->names.count; i++) program->lowered[i] = text_at(&at, &ignored);
  return HIPRTC_SUCCESS;
}

API hiprtcResult hiprtcCompileProgram(hiprtcProgram program, int count,
                                      const char *const *options) {
  if (!program || count < 0 || (count && !options)) return HIPRTC_ERROR_INVALID_INPUT;
  if (program->compiled) return HIPRTC_ERROR_COMPILATION;
  Texts given = {0};
  for (int i = 0; i < count; i++)
    if (!options[i] || !add(&given, options[i])) {
      free(given.bytes);
      return HIPRTC_ERROR_INVALID_INPUT;
    }
  uint32_t status = 0, size = 0;
  program->reply = asked(program, &given, &status, &size);
  free(given.bytes);
  if (!program->reply) return HIPRTC_ERROR_INTERNAL_ERROR; /* no emulator is there */
  program->compiled = true;
  if (!size) return HIPRTC_ERROR_INTERNAL_ERROR; /* it failed itself, and has said so */
  return kept(program, status);
}

API hiprtcResult hiprtcGetLoweredName(hiprtcProgram program, const char *expression,
                                      const char **lowered) {
  if (!program || !expression || !lowered) return HIPRTC_ERROR_INVALID_INPUT;
  if (!program->compiled) return HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION;
  if (!program->code) return HIPRTC_ERROR_COMPILATION;
  const char *at = program->names.bytes;
  for (uint32_t i = 0, size; i < program->names.count; i++)
    if (!strcmp(text_at(&at, &size), expression)) {
      *lowered = program->lowered[i];
      return HIPRTC_SUCCESS;
    }
  return HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
}

API hiprtcResult hiprtcGetProgramLogSize(hiprtcProgram program, size_t *size) {
  if (!program || !size) return HIPRTC_ERROR_INVALID_INPUT;
  *size = program->log_size + 1u;
  return HIPRTC_SUCCESS;
}
API hiprtcResult hiprtcGetProgramLog(hiprtcProgram program, char *log) {
  if (!program || !log) return HIPRTC_ERROR_INVALID_INPUT;
  memcpy(log, program->log ? program->log : "", program->log_size + 1u);
  return HIPRTC_SUCCESS;
}
API hiprtcResult hiprtcGetCodeSize(hiprtcProgram program, size_t *size) {
  if (!program || !size) return HIPRTC_ERROR_INVALID_INPUT;
  if (!program->code) return HIPRTC_ERROR_INVALID_PROGRAM;
  *size = program->code_size;
  return HIPRTC_SUCCESS;
}
API hiprtcResult hiprtcGetCode(hiprtcProgram program, char *code) {
  if (!program || !code) return HIPRTC_ERROR_INVALID_INPUT;
  if (!program->code) return HIPRTC_ERROR_INVALID_PROGRAM;
  memcpy(code, program->code, program->code_size);
  return HIPRTC_SUCCESS;
}

/* Of a program that is to be linked there would be bitcode; none is, and nothing is linked here. */
API hiprtcResult hiprtcGetBitcodeSize(hiprtcProgram program, size_t *size) {
  return program && size ? HIPRTC_ERROR_INVALID_PROGRAM : HIPRTC_ERROR_INVALID_INPUT;
}
API hiprtcResult hiprtcGetBitcode(hiprtcProgram program, char *bitcode) {
  return program && bitcode ? HIPRTC_ERROR_INVALID_PROGRAM : HIPRTC_ERROR_INVALID_INPUT;
}
API hiprtcResult hiprtcLinkCreate(void) { return HIPRTC_ERROR_LINKING; }
API hiprtcResult hiprtcLinkAddFile(void) { return HIPRTC_ERROR_LINKING; }
API hiprtcResult hiprtcLinkAddData(void) { return HIPRTC_ERROR_LINKING; }
API hiprtcResult hiprtcLinkComplete(void) { return HIPRTC_ERROR_LINKING; }
API hiprtcResult hiprtcLinkDestroy(void) { return HIPRTC_ERROR_LINKING; }
