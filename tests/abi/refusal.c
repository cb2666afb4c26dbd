/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors
 *
 * Hosts that are not, or wrongly, set up, and peers on other networks: each case is a process with
 * its own config, and each failure must come within one call and name its cause.
 *
 *   refusal PLUGIN FOLDER
 */
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/abi/driver.h"

static const char* g_plugin;
static const char* g_folder;

static void write_config(const char* name, const char* text) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", g_folder, name);
  FILE* file = fopen(path, "w");
  REQUIRE(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0, "%s", path);
}

static void use_config(const char* name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", g_folder, name);
  setenv("ZTCP_CONFIG", path, 1);
}

/* Runs `body` in a child; the bytes it writes to `out` are returned in `handle`. */
static void in_child(void (*body)(int out), unsigned char* handle) {
  int pipe_fds[2];
  REQUIRE(pipe(pipe_fds) == 0, "pipe");
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    body(pipe_fds[1]);
    exit(0);
  }
  close(pipe_fds[1]);
  if (handle != NULL)
    REQUIRE(read(pipe_fds[0], handle, NCCL_NET_HANDLE_MAXSIZE) == NCCL_NET_HANDLE_MAXSIZE,
            "no handle from the child");
  close(pipe_fds[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child, "waitpid");
  REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %x", status);
}

static void expect_connect_fails(const Net* net, const unsigned char* peer, ncclResult_t wanted) {
  unsigned char handle[NCCL_NET_HANDLE_MAXSIZE];
  memcpy(handle, peer, sizeof handle);
  void* comm = NULL;
  const ncclResult_t result = net_connect(net, 0, handle, &comm);
  REQUIRE(result == wanted, "connect says %d, not %d", result, wanted);
  REQUIRE(comm == NULL, "a failed connect returned a comm");
}

/* No config: init fails and says how to set up; then NCCL finalizes the plugin all the same. */
static void missing(int out) {
  (void)out;
  use_config("nowhere.conf");
  void* library = load_plugin(g_plugin);
  for (int version = kOldest; version <= kNewest; ++version) {
    Net net = open_table(library, version);
    REQUIRE(net_init(&net) == ncclSystemError, "v%d: init without a config", version);
    REQUIRE(net.ctx == NULL, "a failed init returned a context");
    REQUIRE_OK(net_finalize(&net));
  }
  REQUIRE(log_has("nowhere.conf") && log_has("ztcp_setup"), "the log does not say how to set up");
}

static void fallback(int out) {
  (void)out;
  use_config("broken.conf");
  setenv("ZTCP_ON_ERROR", "fallback", 1);
  void* library = load_plugin(g_plugin);
  Net net = open_table(library, kNewest);
  REQUIRE(net_init(&net) == ncclSystemError, "init with fallback chosen");
  REQUIRE(log_has("all hosts of the job must do the same"), "no warning");
}

/* Init succeeds, devices are shown, listen returns a handle that carries the refusal, every other
 * call fails. */
static void refuse(int out, const char* device, const char* reason) {
  void* library = load_plugin(g_plugin);
  Net net = open_table(library, kNewest);
  REQUIRE_OK(net_init(&net));
  int ndev = 0;
  REQUIRE_OK(net_devices(&net, &ndev));
  REQUIRE(ndev == 1, "%d devices", ndev);
  Properties properties;
  REQUIRE_OK(net_properties(&net, 0, &properties));
  REQUIRE(strcmp(properties.name, device) == 0, "the device is called %s", properties.name);
  REQUIRE(properties.ptr_support == NCCL_PTR_HOST, "ptrSupport");

  unsigned char handle[NCCL_NET_HANDLE_MAXSIZE];
  void* listener = NULL;
  REQUIRE_OK(net_listen(&net, 0, handle, &listener));
  REQUIRE(write(out, handle, sizeof handle) == sizeof handle, "write");
  void* comm = NULL;
  REQUIRE(net_accept(&net, listener, &comm) == ncclSystemError && comm == NULL, "accept");
  REQUIRE(log_has(reason), "the reason, %s, is not logged", reason);

  unsigned char healthy[NCCL_NET_HANDLE_MAXSIZE] = {0, 0, 'z', 'T', 0xc9, 0x71};
  expect_connect_fails(&net, healthy, ncclSystemError);
  REQUIRE_OK(net_close_listen(&net, listener));
  REQUIRE_OK(net_finalize(&net));
}

static void broken(int out) {
  use_config("broken.conf");
  char log[4096];
  snprintf(log, sizeof log, "%s/log", g_folder);
  setenv("ZTCP_LOG", log, 1);
  refuse(out, "ztcp-error", "broken.conf:2:");

  char text[4096] = "";
  FILE* file = fopen(log, "r");
  REQUIRE(file != NULL, "ZTCP_LOG was not written");
  REQUIRE(fread(text, 1, sizeof text - 1, file) > 0, "ZTCP_LOG is empty");
  fclose(file);
  REQUIRE(strstr(text, "broken.conf:2:") != NULL, "ZTCP_LOG lacks the reason");
}

/* A log file that can't be opened is reported through NCCL's logger, and nothing fails. */
static void unwritable_log(int out) {
  (void)out;
  use_config("broken.conf");
  char log[4096];
  snprintf(log, sizeof log, "%s/fifo", g_folder);
  REQUIRE(mkfifo(log, 0600) == 0, "mkfifo");
  setenv("ZTCP_LOG", log, 1);
  void* library = load_plugin(g_plugin);
  Net net = open_table(library, kNewest);
  REQUIRE_OK(net_init(&net));
  REQUIRE(log_has("ZTCP_LOG") && log_has(log), "the unusable log is not reported");
  REQUIRE(log_has("a folder that only this user may write to"), "the log does not name the remedy");
  REQUIRE_OK(net_finalize(&net));
}

static void of_no_run_folder(int out) {
  use_config("homeless.conf");
  refuse(out, "nic-of-homeless", "there is no such folder");
}

int main(int argc, char** argv) {
  REQUIRE(argc == 3, "usage: refusal PLUGIN FOLDER");
  g_plugin = argv[1];
  g_folder = argv[2];
  write_config("broken.conf", "schema = 1\nthis is not TOML\n");
  write_config("homeless.conf",
               "schema = 1\n"
               "run_dir = \"absent\"\n"
               "[[nic]]\n"
               "name = \"nic-of-homeless\"\n"
               "driver = \"memif\"\n"
               "address = \"10.77.1.10/24\"\n"
               "mac = \"52:54:00:77:01:10\"\n"
               "memif_socket = \"memif.sock\"\n");

  unsigned char from_broken[NCCL_NET_HANDLE_MAXSIZE];
  unsigned char from_homeless[NCCL_NET_HANDLE_MAXSIZE];
  in_child(missing, NULL);
  in_child(fallback, NULL);
  in_child(broken, from_broken);
  in_child(unwritable_log, NULL);
  in_child(of_no_run_folder, from_homeless);

  /* A healthy host connects to them, and to hosts on NCCL's own networks. */
  void* library = load_plugin(g_plugin);
  Net net = open_table(library, kNewest);
  REQUIRE_OK(net_init(&net));
  char host[32] = "";
  gethostname(host, sizeof host - 1);
  char line[128];
  snprintf(line, sizeof line, "host %s takes no connections", host);
  expect_connect_fails(&net, from_broken, ncclRemoteError);
  REQUIRE(log_has(line), "the refusing host is not named: %s", line);
  expect_connect_fails(&net, from_homeless, ncclRemoteError);

  unsigned char socket_handle[NCCL_NET_HANDLE_MAXSIZE] = {2, 0, 0x9c, 0x41, 10, 9, 8, 7};
  expect_connect_fails(&net, socket_handle, ncclRemoteError);
  REQUIRE(log_has("the peer at 10.9.8.7 uses another network"), "the foreign peer is not named");
  unsigned char noise[NCCL_NET_HANDLE_MAXSIZE];
  memset(noise, 0xff, sizeof noise);
  expect_connect_fails(&net, noise, ncclRemoteError);
  unsigned char older[NCCL_NET_HANDLE_MAXSIZE] = {0, 0, 'z', 'T', 0xc9, 0x11};
  expect_connect_fails(&net, older, ncclRemoteError);
  REQUIRE(log_has("speaks handle version 1, this one 7"), "the other version is not named");
  REQUIRE_OK(net_finalize(&net));
  return 0;
}
