// Errors end the process; memory, clock, and a file's lines.
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void die(const char *what) {
  fprintf(stderr, "load client: %s: %s\n", what, strerror(errno));
  exit(1);
}

static void *allocate(size_t bytes) {
  void *memory = calloc(1, bytes == 0 ? 1 : bytes);
  if (memory == NULL) die("memory");
  return memory;
}

static int64_t now_micros(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

// @returns how many lines a file has; *lines are they, without their ends.
static int read_lines(const char *file, char ***lines) {
  FILE *from = fopen(file, "r");
  if (from == NULL) die(file);
  char *line = NULL;
  size_t room = 0;
  ssize_t bytes;
  int count = 0;
  while ((bytes = getline(&line, &room, from)) > 0) {
    if (line[bytes - 1] == '\n') line[bytes - 1] = 0;
    *lines = realloc(*lines, sizeof(char *) * (size_t)(count + 1));
    if (*lines == NULL) die("memory");
    (*lines)[count++] = strdup(line);
  }
  fclose(from);
  free(line);
  return count;
}
