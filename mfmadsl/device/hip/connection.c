/* The way to the emulator: a socket, on which requests and replies take turns.

   A request is two words, operation and bytes that follow; a reply is two words, a hipError_t and
   bytes that follow. The first request carries the descriptor of the memory that both sides share.
 */
#include "channel.h"
#include "runtime.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

Device device;

static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static int channel = -1;
static bool tried;
static hipError_t state = hipErrorNoDevice;

void lock(void) { pthread_mutex_lock(&mutex); }
void unlock(void) { pthread_mutex_unlock(&mutex); }

static bool skip(size_t size) {
  char some[256];
  for (; size; size -= size < sizeof some ? size : sizeof some)
    if (!get(channel, some, size < sizeof some ? size : sizeof some)) return false;
  return true;
}

/* The emulator is gone, in mid-sentence perhaps: nothing that it would say now could be understood.
 */
static hipError_t lost(void) {
  if (channel >= 0) close(channel);
  channel = -1;
  fprintf(stderr, "mfmadsl device: the emulator has ended\n");
  return state = hipErrorNoDevice;
}

hipError_t ask2(Operation operation, const void *head, size_t head_size, const void *body,
                size_t size, void *reply, size_t room, size_t *got) {
  if (state) return state;
  if (head_size + size > UINT32_MAX) return hipErrorInvalidValue;
  uint32_t request[2] = {operation, (uint32_t)(head_size + size)}, answer[2];
  if (!put(channel, request, sizeof request) || !put(channel, head, head_size) ||
      !put(channel, body, size) || !get(channel, answer, sizeof answer))
    return lost();
  size_t kept = answer[1] < room ? answer[1] : room;
  if (!get(channel, reply, kept) || !skip(answer[1] - kept)) return lost();
  if (got) *got = kept;
  return answer[0];
}

hipError_t ask(Operation operation, const void *body, size_t size, void *reply, size_t room,
               size_t *got) {
  return ask2(operation, NULL, 0, body, size, reply, room, got);
}

static bool send_memory(int file) {
  uint64_t start = memory_start();
  uint32_t request[2] = {HELLO, sizeof start};
  struct iovec part = {request, sizeof request};
  union {
    char space[CMSG_SPACE(sizeof file)];
    struct cmsghdr aligned;
  } control = {{0}};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS,
  header->cmsg_len = CMSG_LEN(sizeof file);
  memcpy(CMSG_DATA(header), &file, sizeof file);
  return sendmsg(channel, &message, MSG_NOSIGNAL) == sizeof request &&
         put(channel, &start, sizeof start);
}

/* A child of `fork` has a copy of the socket, on which its words and its parent's would mix. As
   with HIP itself, only `exec` brings it a device. */
static void forked(void) {
  mutex = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  if (channel >= 0) close(channel);
  channel = -1;
  state = tried ? hipErrorNotInitialized : state;
}

static hipError_t connect_to_emulator(void) {
  channel = open_channel();
  if (channel < 0) return hipErrorNoDevice;
  int file;
  hipError_t error = map_memory(&file);
  if (error) return error;
  uint32_t answer[2];
  bool told = send_memory(file) && get(channel, answer, sizeof answer) && !answer[0] &&
              answer[1] == sizeof device && get(channel, &device, sizeof device);
  close(file);
  return told ? hipSuccess : hipErrorNoDevice;
}

hipError_t ready(void) {
  lock();
  if (!tried) {
    tried = true;
    pthread_atfork(NULL, NULL, forked);
    state = connect_to_emulator();
    if (state && channel >= 0) close(channel), channel = -1;
  }
  hipError_t error = state;
  unlock();
  return error;
}
