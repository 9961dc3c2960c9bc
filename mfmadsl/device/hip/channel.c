#include "channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

bool put(int channel, const void *bytes, size_t size) {
  for (const char *at = bytes; size;) {
    ssize_t n = send(channel, at, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n, size -= n;
  }
  return true;
}

bool get(int channel, void *bytes, size_t size) {
  for (char *at = bytes; size;) {
    ssize_t n = recv(channel, at, size, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n, size -= n;
  }
  return true;
}

int open_channel(void) {
  const char *place = getenv("MFMADSL_DEVICE");
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (!place || strlen(place) >= sizeof address.sun_path) return -1;
  strcpy(address.sun_path, place);
  int channel = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (channel < 0 || !connect(channel, (struct sockaddr *)&address, sizeof address)) return channel;
  close(channel);
  return -1;
}
