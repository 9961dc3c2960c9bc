/* The socket on which a library and the emulator talk. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

int open_channel(void); /* to the emulator of this program; -1 where there is none */
bool put(int channel, const void *bytes, size_t size);
bool get(int channel, void *bytes, size_t size);
