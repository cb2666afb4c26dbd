/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors
 *
 * Two ranks, each a process with its own environment and config, that differ in a setting that all
 * ranks must share: the connecting rank gets an error that names it, at once. Over kernel sockets
 * on loopback.
 *
 *   agreement PLUGIN FOLDER VERSION
 */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/abi/driver.h"

enum { kFirstWithTuner = 9 };

/* One rank's settings. */
typedef struct {
  int nccl_devices;
  const char* tuner;    /* ZTCP_TUNER */
  const char* channels; /* NCCL_NCHANNELS_PER_NET_PEER; NULL: not set. */
  int speed_mbps;       /* 0: the interface's. */
  int device;           /* To listen on. */
} Settings;

typedef struct {
  const char* name;
  Settings listens;
  Settings connects;
  const char* said; /* Logged by the connecting rank; NULL: it connects. */
  const char* mend;
  int before_tuners; /* Also with tables that have no tuner. */
} Case;

static const Case kCases[] = {
    {"equal", {4, "on", NULL, 0, 3}, {4, "on", NULL, 0, 0}, NULL, NULL, 1},
    {"devices",
     {4, "on", NULL, 0, 3},
     {8, "on", NULL, 0, 0},
     "shows NCCL 4 devices for 1 NIC, this rank",
     "set the same nccl_devices",
     1},
    {"one device",
     {8, "on", NULL, 0, 7},
     {1, "on", NULL, 0, 0},
     "shows NCCL 8 devices for 1 NIC, this rank",
     "set the same nccl_devices",
     1},
    {"tuner",
     {4, "off", NULL, 0, 0},
     {4, "on", NULL, 0, 0},
     "leaves them to NCCL",
     "ZTCP_TUNER=off",
     0},
    {"tuner of the peer",
     {4, "on", NULL, 0, 0},
     {4, "off", NULL, 0, 0},
     "leaves them to NCCL",
     "ZTCP_TUNER=off",
     0},
    {"channels",
     {4, "on", "8", 0, 0},
     {4, "on", "4", 0, 0},
     "NCCL_NCHANNELS_PER_NET_PEER is 8 at the peer",
     "export the same value",
     1},
    {"channels of one",
     {4, "on", NULL, 0, 0},
     {4, "on", "4", 0, 0},
     "NCCL_NCHANNELS_PER_NET_PEER is not set at the peer",
     "export the same value",
     1},
    {"equal channels", {4, "on", "4", 0, 0}, {8, "on", "4", 0, 0}, NULL, NULL, 1},
    {"speed",
     {8, "on", NULL, 400000, 0},
     {8, "on", NULL, 100000, 0},
     "have 400000 Mb/s together",
     "set the same speed_mbps",
     1},
    {"device not shown",
     {4, "on", NULL, 0, 5},
     {4, "on", NULL, 0, 0},
     "listens on NCCL device 5, which it does not show (it shows 4)",
     "set the same nccl_devices",
     1},
};

static const char* g_plugin;
static const char* g_folder;
static int g_version;

static Net start(const Settings* settings) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%d.conf", g_folder, (int)getpid());
  FILE* file = fopen(path, "w");
  REQUIRE(file != NULL, "%s", path);
  REQUIRE(fprintf(file,
                  "schema = 1\n"
                  "[[nic]]\n"
                  "name = \"lo0\"\n"
                  "driver = \"socket\"\n"
                  "interface = \"lo\"\n"
                  "address = \"127.0.0.1/8\"\n"
                  "speed_mbps = %d\n"
                  "nccl_devices = %d\n",
                  settings->speed_mbps, settings->nccl_devices) > 0 &&
              fclose(file) == 0,
          "%s", path);
  setenv("ZTCP_CONFIG", path, 1);
  setenv("ZTCP_TUNER", settings->tuner, 1);
  if (settings->channels != NULL) setenv("NCCL_NCHANNELS_PER_NET_PEER", settings->channels, 1);
  Net net = open_table(load_plugin(g_plugin), g_version);
  REQUIRE_OK(net_init(&net));
  int shown = 0;
  REQUIRE_OK(net_devices(&net, &shown));
  REQUIRE(shown == settings->nccl_devices, "%d devices are shown", shown);
  return net;
}

/* Listens and accepts until the other rank closes the pipe at its end. */
static void listen_side(const Case* is, int out, int in) {
  Net net = start(&is->listens);
  unsigned char handle[NCCL_NET_HANDLE_MAXSIZE] = {0};
  void* listener = NULL;
  REQUIRE_OK(net_listen(&net, is->listens.device, handle, &listener));
  REQUIRE(write(out, handle, sizeof handle) == (ssize_t)sizeof handle, "write");
  if (is->said == NULL) {
    void* comm = accept_until_done(&net, listener);
    REQUIRE_OK(net_close_recv(&net, comm));
  } else if (is->listens.device >= is->listens.nccl_devices) {
    void* comm = NULL;
    REQUIRE(net_accept(&net, listener, &comm) == ncclSystemError && comm == NULL, "accept");
    REQUIRE(log_has("NCCL named device 5, and this rank shows 4"), "the listener has no log line");
  }
  char end = 0;
  REQUIRE(read(in, &end, 1) == 0, "the other rank wrote to the pipe");
  REQUIRE_OK(net_close_listen(&net, listener));
  REQUIRE_OK(net_finalize(&net));
}

static void connect_side(const Case* is, int in) {
  unsigned char handle[NCCL_NET_HANDLE_MAXSIZE];
  Net net = start(&is->connects);
  REQUIRE(read(in, handle, sizeof handle) == (ssize_t)sizeof handle, "no handle");
  if (is->said == NULL) {
    REQUIRE_OK(net_close_send(&net, connect_until_done(&net, 0, handle)));
  } else {
    void* comm = NULL;
    REQUIRE(net_connect(&net, 0, handle, &comm) == ncclRemoteError, "%s: connect", is->name);
    REQUIRE(comm == NULL, "a failed connect returned a comm");
    REQUIRE(log_has(is->said), "%s: \"%s\" is not said", is->name, is->said);
    REQUIRE(log_has(is->mend), "%s: \"%s\" is not said", is->name, is->mend);
  }
  REQUIRE_OK(net_finalize(&net));
}

static void run(const Case* is) {
  int handles[2];
  int life[2]; /* Ends with the connecting rank. */
  REQUIRE(pipe(handles) == 0 && pipe(life) == 0, "pipe");
  pid_t children[2];
  for (int side = 0; side < 2; ++side) {
    children[side] = fork();
    REQUIRE(children[side] >= 0, "fork");
    if (children[side] != 0) continue;
    alarm(60);
    if (side == 0) {
      close(life[1]);
      listen_side(is, handles[1], life[0]);
    } else {
      close(life[0]);
      connect_side(is, handles[0]);
    }
    exit(0);
  }
  close(life[1]);
  for (int side = 0; side < 2; ++side) {
    int status = 0;
    REQUIRE(waitpid(children[side], &status, 0) == children[side], "waitpid");
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: the rank that %s ended with %x",
            is->name, side == 0 ? "listens" : "connects", status);
  }
  close(life[0]);
  close(handles[0]);
  close(handles[1]);
}

int main(int argc, char** argv) {
  REQUIRE(argc == 4, "usage: agreement PLUGIN FOLDER VERSION");
  g_plugin = argv[1];
  g_folder = argv[2];
  g_version = atoi(argv[3]);
  for (size_t i = 0; i < sizeof kCases / sizeof kCases[0]; ++i)
    if (g_version >= kFirstWithTuner || kCases[i].before_tuners) run(&kCases[i]);
  return 0;
}
