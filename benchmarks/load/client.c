// Load client of the benchmarks: opens N WebSockets, sends one subscribe frame on each,
// counts the pills that arrive and how long after their planned send. One thread, epoll; compiled,
// so that it takes less CPU than any server it measures. Linux.
//
//   client HOST PORT PATH SOCKETS WAIT FRAME…
//
// WAIT: `live` if the server says so once a subscription holds, and only then counts a socket as
// opened, else `open`. Socket i sends FRAME i modulo their number. WS_KEY in the environment is
// sent as X-API-Key. WS_NARROW makes the kernel's receive buffers small, so that the server notices
// a socket that stops reading after some MiB, and adds up the `skipped` of pills. WS_ARRIVALS keeps
// each arrival of a run, four bytes a pill and socket. A pill is an id of the form "id":"<run>-<number>". Commands on stdin, a line each, are answered by a line of
// JSON:
//
//   run <run> <pills> <µs> <rate>  counts the pills of this run from now on: the first is planned at
//                                  <µs> of CLOCK_MONOTONIC, and <rate> of them a second
//   pause, resume                  stops and resumes reading on all sockets
//   state                          the counts of all sockets
//   report                         the same, with the histogram: a bucket's upper µs and its count
//   arrivals <socket>              with WS_ARRIVALS: by pill, µs from <µs> to its first arrival
//                                  there, 0 for none
//
// The end of stdin ends it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
  PILLS_MAX = 1 << 24,
  // Buckets of 1/256 of their value: percentiles are at most 0.4 % too high.
  SUB_BUCKETS = 256,
  BUCKETS = SUB_BUCKETS * 40,
  FRAME_BYTES_MAX = 4 << 20,
  FRAME_OUT_BYTES_MAX = 16 << 10,
  READ_BYTES = 256 << 10,
  OPENING_AT_ONCE = 50,
  ERROR_BYTES = 300,
  NARROW_BYTES = 32 << 10,
  SLOW_CONSUMER = 4001,
};
enum opcode { TEXT = 1, CLOSE = 8, PING = 9, PONG = 10 };
enum state { HANDSHAKE, OPEN, CLOSED };

struct peer {
  int fd;
  enum state state;
  bool live;
  // Bytes of a frame that has not arrived completely.
  uint8_t *rest;
  size_t rest_bytes;
  // Pills of the run, each once, with a bit for each.
  uint32_t pills;
  uint64_t *seen;
  // With WS_ARRIVALS: µs from the run's start to the arrival of each pill, 0 for none.
  uint32_t *arrivals;
};

static struct peer *peers;
static int peer_count;
static char **frames;
static int frame_count;
static int epoll_fd;
static bool narrow, keeps_arrivals;
static int open_count, live_count, closed_count, slow_count, error_count;
static char first_error[ERROR_BYTES + 1]; // an error frame, or why a socket ended
static char id_mark[128];                 // "id":"<run>-
static size_t id_mark_bytes;
static uint32_t run_pills;
static double start_micros, micros_apart;
static uint64_t received, doubled, skipped, frames_with_pills, bytes_with_pills, reads;
static uint64_t histogram[BUCKETS];
static uint8_t buffer[FRAME_BYTES_MAX + READ_BYTES];

static void die(const char *what) {
  fprintf(stderr, "load client: %s: %s\n", what, strerror(errno));
  exit(1);
}

static void *allocate(size_t count, size_t bytes) {
  void *memory = calloc(count, bytes);
  if (memory == NULL) die("memory");
  return memory;
}

static int64_t now_micros(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void begin_run(const char *run, uint32_t pills) {
  if (pills > PILLS_MAX) die("too many pills");
  id_mark_bytes = (size_t)snprintf(id_mark, sizeof id_mark, "\"id\":\"%s-", run);
  run_pills = pills;
  received = doubled = skipped = frames_with_pills = bytes_with_pills = reads = 0;
  memset(histogram, 0, sizeof histogram);
  for (int i = 0; i < peer_count; i++) {
    free(peers[i].seen);
    peers[i].seen = allocate(pills / 64 + 1, sizeof(uint64_t));
    peers[i].pills = 0;
    if (!keeps_arrivals) continue;
    free(peers[i].arrivals);
    peers[i].arrivals = allocate(pills + 1, sizeof(uint32_t));
  }
}

static void record(double micros) {
  uint64_t value = micros < 1 ? 1 : (uint64_t)micros;
  int shift = value < 2 * SUB_BUCKETS ? 0 : 63 - __builtin_clzll(value) - 8;
  uint64_t bucket = (uint64_t)shift * SUB_BUCKETS + (value >> shift);
  histogram[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
}

static uint64_t upper_of(uint64_t bucket) {
  uint64_t shift = bucket < 2 * SUB_BUCKETS ? 0 : bucket / SUB_BUCKETS - 1;
  return ((bucket - shift * SUB_BUCKETS + 1) << shift) - 1;
}

// Finds the next number behind a mark. @returns where it begins, NULL where there is none
static const uint8_t *number_behind(const uint8_t *at, const uint8_t *end, const char *mark,
                                    size_t mark_bytes, uint64_t *number) {
  at = memmem(at, (size_t)(end - at), mark, mark_bytes);
  if (at == NULL) return NULL;
  at += mark_bytes;
  *number = 0;
  for (const uint8_t *digit = at; digit < end && *digit >= '0' && *digit <= '9'; digit++) {
    *number = *number * 10 + (uint64_t)(*digit - '0');
  }
  return at;
}

// Counts the pills in the text of a frame. @returns whether there were any.
static bool take_pills(struct peer *peer, const uint8_t *text, size_t bytes, int64_t now) {
  const uint8_t *end = text + bytes;
  bool any = false;
  uint64_t pill;
  for (const uint8_t *at = text; (at = number_behind(at, end, id_mark, id_mark_bytes, &pill));) {
    any = true;
    if (pill >= run_pills) continue;
    uint64_t bit = 1ull << (pill % 64);
    if (peer->seen[pill / 64] & bit) {
      doubled++;
      continue;
    }
    peer->seen[pill / 64] |= bit;
    double since = (double)now - start_micros;
    if (keeps_arrivals) peer->arrivals[pill] = since < 1 ? 1 : (uint32_t)since;
    peer->pills++;
    received++;
    record(since - (double)pill * micros_apart);
  }
  if (!any) return false;
  frames_with_pills++;
  bytes_with_pills += bytes;
  if (!narrow) return true;
  static const char mark[] = "\"skipped\":";
  uint64_t number;
  for (const uint8_t *at = text; (at = number_behind(at, end, mark, sizeof mark - 1, &number));) {
    skipped += number;
  }
  return true;
}

static void keep_error(const char *text, size_t bytes) {
  if (first_error[0] != 0) return;
  if (bytes > ERROR_BYTES) bytes = ERROR_BYTES;
  for (size_t i = 0; i < bytes; i++) {
    char c = text[i];
    first_error[i] = c == '"' || c == '\\' || c < 32 ? '\'' : c;
  }
}

static void end_peer(struct peer *peer, const char *why) {
  if (peer->state == CLOSED) return;
  if (peer->state == OPEN) open_count--;
  peer->state = CLOSED;
  closed_count++;
  keep_error(why, strlen(why));
  close(peer->fd);
  free(peer->rest);
  peer->rest = NULL;
  peer->rest_bytes = 0;
}

static void send_all(struct peer *peer, const void *bytes, size_t count) {
  // The bytes are few, and the socket's buffer is empty: a short write is an error.
  if (send(peer->fd, bytes, count, MSG_NOSIGNAL) != (ssize_t)count) end_peer(peer, "send failed");
}

// Frames of a WebSocket: RFC 6455, section 5.2. Those of a client are masked; a mask of zeros leaves
// the bytes as they are.
static void send_frame(struct peer *peer, int opcode, const void *payload, size_t count) {
  uint8_t frame[FRAME_OUT_BYTES_MAX + 8];
  if (count > FRAME_OUT_BYTES_MAX) die("a frame to send is too long");
  size_t head = 2;
  frame[0] = (uint8_t)(0x80 | opcode);
  frame[1] = (uint8_t)(0x80 | (count < 126 ? count : 126));
  if (count >= 126) {
    frame[2] = (uint8_t)(count >> 8);
    frame[3] = (uint8_t)count;
    head = 4;
  }
  memset(frame + head, 0, 4);
  memcpy(frame + head + 4, payload, count);
  send_all(peer, frame, head + 4 + count);
}

static bool begins(const uint8_t *payload, size_t bytes, const char *text) {
  return bytes >= strlen(text) && memcmp(payload, text, strlen(text)) == 0;
}

static void on_frame(struct peer *peer, int opcode, const uint8_t *at, size_t bytes, int64_t now) {
  if (opcode == CLOSE) {
    char why[64];
    int code = bytes >= 2 ? at[0] << 8 | at[1] : 1005;
    snprintf(why, sizeof why, "closed with %d", code);
    if (code == SLOW_CONSUMER) slow_count++;
    end_peer(peer, why);
  } else if (opcode == PING) {
    send_frame(peer, PONG, at, bytes);
  } else if (opcode == PONG || take_pills(peer, at, bytes, now)) {
    return;
  } else if (!peer->live && begins(at, bytes, "{\"type\":\"live\"")) {
    peer->live = true;
    live_count++;
  } else if (begins(at, bytes, "{\"type\":\"error\"")) {
    error_count++;
    keep_error((const char *)at, bytes);
  }
}

// @returns how many bytes the complete frames took.
static size_t take_frames(struct peer *peer, const uint8_t *bytes, size_t count, int64_t now) {
  size_t used = 0;
  while (peer->state == OPEN && count - used >= 2) {
    const uint8_t *frame = bytes + used;
    size_t head = 2;
    uint64_t size = frame[1] & 127;
    if (size >= 126) {
      head = size == 126 ? 4 : 10;
      if (count - used < head) break;
      size = 0;
      for (size_t i = 2; i < head; i++) size = size << 8 | frame[i];
    }
    if (size > FRAME_BYTES_MAX - head) {
      end_peer(peer, "a frame of more than 4 MiB");
      break;
    }
    if (count - used < head + size) break;
    on_frame(peer, frame[0] & 15, frame + head, size, now);
    used += head + size;
  }
  return used;
}

static size_t take_handshake(struct peer *peer, const uint8_t *bytes, size_t count) {
  const uint8_t *end = memmem(bytes, count, "\r\n\r\n", 4);
  if (end == NULL) return 0;
  if (!begins(bytes, count, "HTTP/1.1 101")) {
    keep_error((const char *)bytes, count);
    end_peer(peer, "not upgraded");
    return count;
  }
  peer->state = OPEN;
  open_count++;
  const char *subscribe = frames[(peer - peers) % frame_count];
  send_frame(peer, TEXT, subscribe, strlen(subscribe));
  return (size_t)(end + 4 - bytes);
}

static void on_readable(struct peer *peer) {
  if (peer->state == CLOSED) return;
  size_t kept = peer->rest_bytes;
  if (kept > 0) memcpy(buffer, peer->rest, kept);
  ssize_t got = recv(peer->fd, buffer + kept, READ_BYTES, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    end_peer(peer, got == 0 ? "closed without a close frame" : strerror(errno));
    return;
  }
  reads++;
  size_t count = kept + (size_t)got;
  size_t used = peer->state == HANDSHAKE ? take_handshake(peer, buffer, count) : 0;
  used += take_frames(peer, buffer + used, count - used, now_micros());
  if (peer->state == CLOSED) return;
  size_t left = count - used;
  if (left > kept || (left > 0 && peer->rest == NULL)) {
    peer->rest = realloc(peer->rest, left);
    if (peer->rest == NULL) die("memory");
  }
  if (left > 0) memcpy(peer->rest, buffer + used, left);
  peer->rest_bytes = left;
}

static void print_state(bool with_histogram) {
  uint32_t min = peer_count > 0 ? UINT32_MAX : 0, max = 0;
  for (int i = 0; i < peer_count; i++) {
    if (peers[i].pills < min) min = peers[i].pills;
    if (peers[i].pills > max) max = peers[i].pills;
  }
  printf("{\"sockets\":%d,\"open\":%d,\"live\":%d,\"closed\":%d,\"slow\":%d,\"errors\":%d,"
         "\"firstError\":\"%s\",\"received\":%lu,\"receivedMin\":%u,\"receivedMax\":%u,"
         "\"skipped\":%lu,\"doubled\":%lu,\"frames\":%lu,\"bytes\":%lu,\"reads\":%lu,\"histogram\":[",
         peer_count, open_count, live_count, closed_count, slow_count, error_count, first_error,
         received, min, max, skipped, doubled, frames_with_pills, bytes_with_pills, reads);
  const char *comma = "";
  for (uint64_t i = 0; with_histogram && i < BUCKETS; i++) {
    if (histogram[i] == 0) continue;
    printf("%s[%lu,%lu]", comma, upper_of(i), histogram[i]);
    comma = ",";
  }
  printf("]}\n");
}

static void print_arrivals(unsigned socket) {
  printf("{\"startMicros\":%.3f,\"arrivals\":[", start_micros);
  for (uint32_t i = 0; i < run_pills; i++) {
    printf(i == 0 ? "%u" : ",%u", peers[socket].arrivals[i]);
  }
  printf("]}\n");
}

static void read_all(bool reading) {
  for (int i = 0; i < peer_count; i++) {
    if (peers[i].state == CLOSED) continue;
    struct epoll_event event = {.events = reading ? EPOLLIN : 0, .data.ptr = &peers[i]};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_MOD, peers[i].fd, &event) < 0) die("epoll_ctl");
  }
}

static void command(const char *line) {
  char run[96];
  uint32_t pills;
  double rate;
  unsigned socket;
  if (keeps_arrivals && sscanf(line, "arrivals %u", &socket) == 1 && (int)socket < peer_count) {
    print_arrivals(socket);
    fflush(stdout);
    return;
  }
  if (sscanf(line, "run %95s %u %lf %lf", run, &pills, &start_micros, &rate) == 4) {
    micros_apart = 1e6 / rate;
    begin_run(run, pills);
  }
  bool resumes = strcmp(line, "resume") == 0;
  if (resumes || strcmp(line, "pause") == 0) read_all(resumes);
  print_state(strcmp(line, "report") == 0);
  fflush(stdout);
}

// A line is written at once, and the next one after the answer.
static void on_stdin(void) {
  char line[256];
  if (fgets(line, sizeof line, stdin) == NULL) exit(0);
  line[strcspn(line, "\n")] = 0;
  command(line);
}

// Handles the events of one wait.
static void handle_events(int wait_ms) {
  struct epoll_event events[512];
  int count = epoll_wait(epoll_fd, events, 512, wait_ms);
  if (count < 0 && errno != EINTR) die("epoll_wait");
  for (int i = 0; i < count; i++) {
    if (events[i].data.ptr == NULL) on_stdin();
    else on_readable(events[i].data.ptr);
  }
}

static void poll_for(int fd, struct peer *peer) {
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};
  if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) die("epoll_ctl");
}

static void open_peer(struct peer *peer, const struct addrinfo *address, const char *request) {
  peer->fd = socket(address->ai_family, SOCK_STREAM, 0);
  int bytes = NARROW_BYTES, on = 1;
  if (peer->fd < 0) die("socket (see ulimit -n)");
  if (narrow) setsockopt(peer->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  if (connect(peer->fd, address->ai_addr, address->ai_addrlen) < 0) die("connect");
  setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  send_all(peer, request, strlen(request));
  if (peer->state == CLOSED) return;
  fcntl(peer->fd, F_SETFL, O_NONBLOCK);
  poll_for(peer->fd, peer);
}

int main(int argc, char **argv) {
  if (argc < 7) {
    fprintf(stderr, "client HOST PORT PATH SOCKETS live|open FRAME…\n");
    return 2;
  }
  bool waits_for_live = strcmp(argv[5], "live") == 0;
  frames = argv + 6;
  frame_count = argc - 6;
  peer_count = atoi(argv[4]);
  peers = allocate((size_t)peer_count + 1, sizeof(struct peer));
  keeps_arrivals = getenv("WS_ARRIVALS") != NULL;
  begin_run("none", 0);
  epoll_fd = epoll_create1(0);
  if (epoll_fd < 0) die("epoll_create1");
  poll_for(STDIN_FILENO, NULL);

  const char *key = getenv("WS_KEY");
  narrow = getenv("WS_NARROW") != NULL;
  char request[4096];
  snprintf(request, sizeof request,
           "GET %s HTTP/1.1\r\nHost: %s:%s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
           "Sec-WebSocket-Key: ZmFub3V0LWJlbmNobWFyaw==\r\nSec-WebSocket-Version: 13\r\n%s%s%s\r\n",
           argv[3], argv[1], argv[2], key ? "X-API-Key: " : "", key ? key : "", key ? "\r\n" : "");
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *address;
  if (getaddrinfo(argv[1], argv[2], &hints, &address) != 0) die("address");
  for (int i = 0; i < peer_count; i++) {
    open_peer(&peers[i], address, request);
    // A server's queues of sockets that are not accepted, or not authenticated, are short.
    while (i + 1 - (waits_for_live ? live_count : open_count) - closed_count >= OPENING_AT_ONCE) {
      handle_events(100);
    }
  }
  for (;;) handle_events(-1);
}
