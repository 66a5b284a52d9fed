// What the sockets of the load client got of a run: each pill once a socket, doubles, latencies.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  PILLS_MAX = 1 << 24,
  // Buckets of 1/256 of their value: percentiles are at most 0.4 % too high.
  SUB_BUCKETS = 256,
  BUCKETS = SUB_BUCKETS * 40,
};

// One socket's share.
struct got {
  uint32_t pills;
  uint32_t doubled;
  // A bit for each pill of the run.
  uint64_t *seen;
};

static char id_mark[128]; // "id":"<run>-
static size_t id_mark_bytes;
static uint32_t run_pills;
static uint64_t received, skipped, frames_with_pills, bytes_with_pills, reads;
static uint64_t histogram[BUCKETS];

static void record(int64_t micros) {
  uint64_t value = micros < 1 ? 1 : (uint64_t)micros;
  int shift = value < 2 * SUB_BUCKETS ? 0 : 63 - __builtin_clzll(value) - 8;
  uint64_t bucket = (uint64_t)shift * SUB_BUCKETS + (value >> shift);
  histogram[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
}

static uint64_t upper_of(uint64_t bucket) {
  uint64_t shift = bucket < 2 * SUB_BUCKETS ? 0 : bucket / SUB_BUCKETS - 1;
  return ((bucket - shift * SUB_BUCKETS + 1) << shift) - 1;
}

static void begin_run(const char *run, uint32_t pills, struct got *gots, int count) {
  if (pills > PILLS_MAX) die("too many pills");
  id_mark_bytes = (size_t)snprintf(id_mark, sizeof id_mark, "\"id\":\"%s-", run);
  run_pills = pills;
  received = skipped = frames_with_pills = bytes_with_pills = reads = 0;
  memset(histogram, 0, sizeof histogram);
  for (int i = 0; i < count; i++) {
    free(gots[i].seen);
    gots[i].seen = allocate((pills / 64 + 1) * sizeof(uint64_t));
    gots[i].pills = gots[i].doubled = 0;
  }
}

// @returns the number at *at, which moves behind it and the character that ends it.
static uint64_t number_at(const uint8_t **at, const uint8_t *end) {
  uint64_t value = 0;
  while (*at < end && **at >= '0' && **at <= '9') value = value * 10 + (uint64_t)(*(*at)++ - '0');
  if (*at < end) (*at)++;
  return value;
}

// Counts the pills in a frame's text. @returns whether there were any.
static bool take_pills(struct got *got, const uint8_t *text, size_t bytes, int64_t now) {
  const uint8_t *end = text + bytes;
  const uint8_t *at = text;
  bool any = false;
  while ((at = memmem(at, (size_t)(end - at), id_mark, id_mark_bytes)) != NULL) {
    at += id_mark_bytes;
    uint64_t pill = number_at(&at, end);
    int64_t planned = (int64_t)number_at(&at, end);
    any = true;
    if (pill >= run_pills) continue;
    uint64_t bit = 1ull << (pill % 64);
    if (got->seen[pill / 64] & bit) {
      got->doubled++;
      continue;
    }
    got->seen[pill / 64] |= bit;
    got->pills++;
    received++;
    record(now - planned);
  }
  if (any) {
    frames_with_pills++;
    bytes_with_pills += bytes;
  }
  return any;
}

// Adds up what the pills of a frame say was left out before them.
static void take_skipped(const uint8_t *text, size_t bytes) {
  static const char mark[] = "\"skipped\":";
  const uint8_t *end = text + bytes;
  while ((text = memmem(text, (size_t)(end - text), mark, sizeof mark - 1)) != NULL) {
    text += sizeof mark - 1;
    skipped += number_at(&text, end);
  }
}

static void print_tally(const struct got *gots, int count) {
  uint32_t min = count > 0 ? UINT32_MAX : 0, max = 0;
  uint64_t doubled = 0;
  for (int i = 0; i < count; i++) {
    if (gots[i].pills < min) min = gots[i].pills;
    if (gots[i].pills > max) max = gots[i].pills;
    doubled += gots[i].doubled;
  }
  printf("\"sockets\":%d,\"received\":%lu,\"receivedMin\":%u,\"receivedMax\":%u,", count, received,
         min, max);
  printf("\"skipped\":%lu,\"doubled\":%lu,\"frames\":%lu,\"bytes\":%lu,\"reads\":%lu,\"histogram\":[",
         skipped, doubled, frames_with_pills, bytes_with_pills, reads);
  const char *comma = "";
  for (uint64_t i = 0; i < BUCKETS; i++) {
    if (histogram[i] == 0) continue;
    printf("%s[%lu,%lu]", comma, upper_of(i), histogram[i]);
    comma = ",";
  }
  printf("]");
}
