// Load client of the fan-out benchmark: opens N WebSockets, sends one subscribe frame on each,
// counts the pills that arrive and how long after their planned send. One thread, epoll; compiled,
// so that it takes less CPU than any server it measures. Linux.
//
//   client HOST PORT PATH SOCKETS SUBSCRIBE_FILE [live]
//
// SUBSCRIBE_FILE: a frame a line; socket i sends line i modulo their number. `live`: the server says
// so once a subscription holds, and only then counts a socket as opened. WS_KEY in the
// environment is sent as X-API-Key. WS_NARROW makes the kernel's receive buffers small, so that a
// socket that stops reading is felt by the server after some MiB, and counts what pills say was
// skipped. A pill is an id of the form "id":"<run>-<number>-<planned µs>",
// the time being of CLOCK_MONOTONIC. Commands on stdin, a line each, are answered by a line of JSON:
//
//   state              {"open":…,"live":…,"closed":…,"slow":…,"errors":…,"told":"…"}
//   pause, go on       stops reading all sockets, and goes on: the state
//   run <run> <pills>  counts the pills of this run from now on: {"run":"…"}
//   count              {"received":…}
//   report             counts by socket, histogram as pairs of the bucket's upper µs and its count
//
// The end of stdin ends it; SIGTERM too, after a last report.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "basics.h"
#include "frame.h"
#include "tally.h"

enum {
  READ_BYTES = 256 << 10,
  OPENING_AT_ONCE = 50,
  TOLD_BYTES = 300,
  NARROW_BYTES = 32 << 10,
  SLOW_CONSUMER = 4001,
};

enum state { HANDSHAKE, OPEN, CLOSED };

struct peer {
  int fd;
  enum state state;
  bool live;
  // Bytes of a frame that has not arrived whole.
  uint8_t *rest;
  size_t rest_bytes;
};

static struct peer *peers;
static struct got *gots; // beside the peers
static int peer_count;
static char **subscribes;
static int subscribe_count;
static int epoll_fd;
static int open_count, live_count, closed_count, slow_count, error_count;
static bool narrow;
static char told[TOLD_BYTES + 1]; // the first error, or how a socket ended
static volatile sig_atomic_t stopping;

static uint8_t buffer[FRAME_BYTES_MAX + READ_BYTES];

static void tell(const char *text, size_t bytes) {
  if (told[0] != 0) return;
  if (bytes > TOLD_BYTES) bytes = TOLD_BYTES;
  for (size_t i = 0; i < bytes; i++) {
    char c = text[i];
    told[i] = c == '"' || c == '\\' || c < 32 ? '\'' : c;
  }
}

static void end_peer(struct peer *peer, const char *why) {
  if (peer->state == CLOSED) return;
  if (peer->state == OPEN) open_count--;
  peer->state = CLOSED;
  closed_count++;
  tell(why, strlen(why));
  close(peer->fd);
  free(peer->rest);
  peer->rest = NULL;
  peer->rest_bytes = 0;
}

static void send_all(struct peer *peer, const void *bytes, size_t count) {
  // What we send is small, and the socket's buffer empty: a short write is an error.
  if (send(peer->fd, bytes, count, MSG_NOSIGNAL) != (ssize_t)count) end_peer(peer, "send failed");
}

static void send_frame(struct peer *peer, int opcode, const void *payload, size_t count) {
  uint8_t frame[FRAME_OUT_BYTES_MAX + 8];
  if (count > FRAME_OUT_BYTES_MAX) die("a frame to send is too long");
  send_all(peer, frame, write_frame(frame, opcode, payload, count));
}

static bool begins(const uint8_t *payload, size_t bytes, const char *text) {
  return bytes >= strlen(text) && memcmp(payload, text, strlen(text)) == 0;
}

static void on_text(struct peer *peer, const uint8_t *payload, size_t bytes, int64_t now) {
  if (take_pills(&gots[peer - peers], payload, bytes, now)) {
    if (narrow) take_skipped(payload, bytes);
    return;
  }
  if (!peer->live && begins(payload, bytes, "{\"type\":\"live\"")) {
    peer->live = true;
    live_count++;
  } else if (begins(payload, bytes, "{\"type\":\"error\"")) {
    error_count++;
    tell((const char *)payload, bytes);
  }
}

static void on_frame(struct peer *peer, const struct frame *frame, int64_t now) {
  const uint8_t *at = frame->payload;
  if (frame->opcode == CLOSE) {
    char why[64];
    int code = frame->bytes >= 2 ? at[0] << 8 | at[1] : 1005;
    snprintf(why, sizeof why, "closed with %d", code);
    if (code == SLOW_CONSUMER) slow_count++;
    end_peer(peer, why);
  } else if (frame->opcode == PING) {
    send_frame(peer, PONG, at, frame->bytes);
  } else if (frame->opcode != PONG) {
    on_text(peer, at, frame->bytes, now);
  }
}

// @returns how many bytes the whole frames took.
static size_t take_frames(struct peer *peer, const uint8_t *bytes, size_t count, int64_t now) {
  size_t at = 0;
  while (peer->state == OPEN) {
    struct frame frame;
    enum reading reading = read_frame(bytes + at, count - at, &frame);
    if (reading == TOO_LONG) end_peer(peer, "a frame of more than 4 MiB");
    if (reading != WHOLE) break;
    on_frame(peer, &frame, now);
    at += frame.whole;
  }
  return at;
}

static size_t take_handshake(struct peer *peer, const uint8_t *bytes, size_t count) {
  const uint8_t *end = memmem(bytes, count, "\r\n\r\n", 4);
  if (end == NULL) return 0;
  if (!begins(bytes, count, "HTTP/1.1 101")) {
    tell((const char *)bytes, count);
    end_peer(peer, "not upgraded");
    return count;
  }
  peer->state = OPEN;
  open_count++;
  const char *subscribe = subscribes[(peer - peers) % subscribe_count];
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
  int64_t now = now_micros();
  size_t used = peer->state == HANDSHAKE ? take_handshake(peer, buffer, count) : 0;
  used += take_frames(peer, buffer + used, count - used, now);
  if (peer->state == CLOSED) return;
  size_t left = count - used;
  if (left > kept || (left > 0 && peer->rest == NULL)) {
    peer->rest = realloc(peer->rest, left);
    if (peer->rest == NULL) die("memory");
  }
  if (left > 0) memcpy(peer->rest, buffer + used, left);
  peer->rest_bytes = left;
}

static void report(void) {
  printf("{\"closed\":%d,\"slow\":%d,\"errors\":%d,\"told\":\"%s\",", closed_count, slow_count,
         error_count, told);
  print_tally(gots, peer_count);
  printf("}\n");
}

static void print_state(void) {
  printf("{\"open\":%d,\"live\":%d,\"closed\":%d,\"slow\":%d,\"errors\":%d,\"told\":\"%s\"}\n",
         open_count, live_count, closed_count, slow_count, error_count, told);
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
  if (strcmp(line, "state") == 0) {
    print_state();
  } else if (strcmp(line, "pause") == 0 || strcmp(line, "go on") == 0) {
    read_all(strcmp(line, "go on") == 0);
    print_state();
  } else if (sscanf(line, "run %95s %u", run, &pills) == 2) {
    begin_run(run, pills, gots, peer_count);
    printf("{\"run\":\"%s\"}\n", run);
  } else if (strcmp(line, "count") == 0) {
    printf("{\"received\":%lu}\n", received);
  } else if (strcmp(line, "report") == 0) {
    report();
  } else {
    printf("{\"unknown\":true}\n");
  }
  fflush(stdout);
}

static void on_stdin(void) {
  static char line[256];
  static size_t bytes;
  char more[256];
  ssize_t got = read(STDIN_FILENO, more, sizeof more);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) exit(0);
  for (ssize_t i = 0; i < got; i++) {
    if (more[i] == '\n') {
      line[bytes] = 0;
      bytes = 0;
      command(line);
    } else if (bytes < sizeof line - 1) {
      line[bytes++] = more[i];
    }
  }
}

static void turn(int wait_ms) {
  struct epoll_event events[512];
  int count = epoll_wait(epoll_fd, events, 512, wait_ms);
  if (count < 0 && errno != EINTR) die("epoll_wait");
  for (int i = 0; i < count; i++) {
    if (events[i].data.ptr == NULL) on_stdin();
    else on_readable(events[i].data.ptr);
  }
  if (!stopping) return;
  report();
  fflush(stdout);
  exit(0);
}

static void watch(int fd, struct peer *peer) {
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};
  if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) die("epoll_ctl");
}

static void open_peer(struct peer *peer, const struct addrinfo *address, const char *request) {
  peer->fd = socket(address->ai_family, SOCK_STREAM, 0);
  int bytes = NARROW_BYTES;
  if (peer->fd < 0) die("socket (see ulimit -n)");
  if (narrow) setsockopt(peer->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  if (connect(peer->fd, address->ai_addr, address->ai_addrlen) < 0) die("connect");
  int on = 1;
  setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  send_all(peer, request, strlen(request));
  if (peer->state == CLOSED) return;
  fcntl(peer->fd, F_SETFL, O_NONBLOCK);
  watch(peer->fd, peer);
}

static void stop(int number) {
  (void)number;
  stopping = 1;
}

int main(int argc, char **argv) {
  if (argc < 6 || argc > 7) {
    fprintf(stderr, "client HOST PORT PATH SOCKETS SUBSCRIBE_FILE [live]\n");
    return 2;
  }
  signal(SIGTERM, stop);
  subscribe_count = read_lines(argv[5], &subscribes);
  if (subscribe_count == 0) die("no frame to subscribe with");
  peer_count = atoi(argv[4]);
  peers = allocate(sizeof(struct peer) * (size_t)peer_count);
  gots = allocate(sizeof(struct got) * (size_t)peer_count);
  begin_run("none", 0, gots, peer_count);
  epoll_fd = epoll_create1(0);
  if (epoll_fd < 0) die("epoll_create1");
  fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
  watch(STDIN_FILENO, NULL);

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
    // A server's queues of what it has not accepted, or not authenticated, are short.
    while (i + 1 - (argc == 7 ? live_count : open_count) - closed_count >= OPENING_AT_ONCE) turn(100);
  }
  for (;;) turn(-1);
}
