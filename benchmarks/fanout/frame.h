// Frames of a WebSocket (RFC 6455, section 5.2), as a client reads and writes them.
#include <stdint.h>
#include <string.h>

enum { FRAME_BYTES_MAX = 4 << 20, FRAME_OUT_BYTES_MAX = 16 << 10 };
enum opcode { TEXT = 1, CLOSE = 8, PING = 9, PONG = 10 };

struct frame {
  int opcode;
  const uint8_t *payload;
  size_t bytes;
  // With its head.
  size_t whole;
};

enum reading { PARTIAL, WHOLE, TOO_LONG };

// Reads the frame at the beginning of `bytes`, of which so many are there.
static enum reading read_frame(const uint8_t *bytes, size_t count, struct frame *frame) {
  if (count < 2) return PARTIAL;
  size_t head = 2;
  uint64_t size = bytes[1] & 127;
  if (size >= 126) {
    head = size == 126 ? 4 : 10;
    if (count < head) return PARTIAL;
    size = 0;
    for (size_t i = 2; i < head; i++) size = size << 8 | bytes[i];
  }
  if (size > FRAME_BYTES_MAX - head) return TOO_LONG;
  if (count < head + size) return PARTIAL;
  *frame = (struct frame){bytes[0] & 15, bytes + head, (size_t)size, head + (size_t)size};
  return WHOLE;
}

// Writes a frame of at most FRAME_OUT_BYTES_MAX, and 8 more bytes. Frames of a client are masked; a
// mask of zeros leaves the bytes as they are. @returns how many bytes it takes
static size_t write_frame(uint8_t *to, int opcode, const void *payload, size_t count) {
  size_t head = 2;
  to[0] = (uint8_t)(0x80 | opcode);
  to[1] = (uint8_t)(0x80 | (count < 126 ? count : 126));
  if (count >= 126) {
    to[2] = (uint8_t)(count >> 8);
    to[3] = (uint8_t)count;
    head = 4;
  }
  memset(to + head, 0, 4);
  memcpy(to + head + 4, payload, count);
  return head + 4 + count;
}
