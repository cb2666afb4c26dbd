/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors
 *
 * Checks that the plugin leaves these alone in the process that loads it: output, threads,
 * affinity, signal handlers and mask, environment, locale, umask, working directory, descriptors
 * across exec. And that no library of rdma-core is opened, which only RDMA devices and NICs with
 * driver = "mlx5" need: their constructors and ibv_fork_init() change the process.
 *
 *   hygiene PLUGIN
 */
#include <dirent.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/abi/driver.h"

extern char** environ;

static int g_real_stderr;
static int g_output; /* fd 1 and 2 are redirected here while the plugin works. */

static int count_entries(const char* folder) {
  DIR* dir = opendir(folder);
  REQUIRE(dir != NULL, "%s", folder);
  int n = 0;
  while (readdir(dir) != NULL) ++n;
  closedir(dir);
  return n;
}

static int thread_count(void) { return count_entries("/proc/self/task") - 2; }

static void capture_output(void) {
  fflush(NULL);
  g_real_stderr = fcntl(2, F_DUPFD_CLOEXEC, 100);
  g_output = memfd_create("output", MFD_CLOEXEC);
  REQUIRE(g_output >= 0 && dup2(g_output, 1) == 1 && dup2(g_output, 2) == 2, "dup2");
}

static void require_silence(const char* when) {
  fflush(NULL);
  struct stat status;
  REQUIRE(fstat(g_output, &status) == 0, "fstat");
  if (status.st_size == 0) return;
  char text[4096];
  const ssize_t n = pread(g_output, text, sizeof text - 1, 0);
  text[n > 0 ? n : 0] = '\0';
  dup2(g_real_stderr, 2);
  REQUIRE(0, "%s, this appeared on stdout or stderr:\n%s", when, text);
}

/* All state of a process that a library could change. */
typedef struct {
  cpu_set_t main_cpus;
  struct sigaction actions[NSIG];
  sigset_t mask;
  char* environment;
  char locale[256];
  char folder[4096];
  mode_t creation_mask;
} State;

static char* copy_environment(void) {
  char* text = calloc(1, 1 << 20);
  for (char** e = environ; *e != NULL; ++e) {
    strcat(text, *e);
    strcat(text, "\n");
  }
  return text;
}

static void look(State* state) {
  memset(state, 0, sizeof *state);
  REQUIRE(sched_getaffinity(0, sizeof state->main_cpus, &state->main_cpus) == 0, "affinity");
  for (int s = 1; s < NSIG; ++s) sigaction(s, NULL, &state->actions[s]);
  pthread_sigmask(SIG_SETMASK, NULL, &state->mask);
  state->environment = copy_environment();
  snprintf(state->locale, sizeof state->locale, "%s", setlocale(LC_ALL, NULL));
  REQUIRE(getcwd(state->folder, sizeof state->folder) != NULL, "getcwd");
  state->creation_mask = umask(0);
  umask(state->creation_mask);
}

static void require_no_rdma_core(const char* when) {
  char line[4096];
  FILE* maps = fopen("/proc/self/maps", "re");
  REQUIRE(maps != NULL, "/proc/self/maps");
  while (fgets(line, sizeof line, maps) != NULL)
    REQUIRE(strstr(line, "/libibverbs.so") == NULL && strstr(line, "/libmlx5.so") == NULL,
            "%s: a library of rdma-core is loaded: %s", when, line);
  fclose(maps);
}

static void require_same(const State* before, const char* when) {
  State after;
  look(&after);
  require_silence(when);
  dup2(g_real_stderr, 2); /* So that a failure is visible. */
  REQUIRE(CPU_EQUAL(&before->main_cpus, &after.main_cpus), "%s: affinity", when);
  for (int s = 1; s < NSIG; ++s)
    REQUIRE(before->actions[s].sa_handler == after.actions[s].sa_handler &&
                before->actions[s].sa_flags == after.actions[s].sa_flags,
            "%s: signal %d has another handler", when, s);
  for (int s = 1; s < NSIG; ++s)
    REQUIRE(sigismember(&before->mask, s) == sigismember(&after.mask, s),
            "%s: signal %d is masked differently", when, s);
  REQUIRE(strcmp(before->environment, after.environment) == 0, "%s: environment", when);
  REQUIRE(strcmp(before->locale, after.locale) == 0, "%s: locale", when);
  REQUIRE(strcmp(before->folder, after.folder) == 0, "%s: working directory", when);
  REQUIRE(before->creation_mask == after.creation_mask, "%s: umask", when);
  require_no_rdma_core(when);
  free(after.environment);
  dup2(g_output, 2);
}

/* Our descriptors must not survive exec in the job's children. */
static void require_close_on_exec(const unsigned char* known_fds, const char* when) {
  for (int fd = 0; fd < 1024; ++fd) {
    const int flags = fcntl(fd, F_GETFD);
    if (flags < 0 || known_fds[fd]) continue;
    char link[64];
    char target[256] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, target, sizeof target - 1);
    if (n > 0) target[n] = '\0';
    if ((flags & FD_CLOEXEC) != 0) continue;
    dup2(g_real_stderr, 2);
    REQUIRE(0, "%s: descriptor %d (%s) survives exec", when, fd, target);
  }
}

/* A thread of the host that must keep its own affinity. */
static volatile int g_stop;
static void* host_thread(void* argument) {
  cpu_set_t* cpus = argument;
  cpu_set_t now;
  sched_getaffinity(0, sizeof *cpus, cpus);
  while (!__atomic_load_n(&g_stop, __ATOMIC_ACQUIRE)) sched_yield();
  sched_getaffinity(0, sizeof now, &now);
  return (void*)(intptr_t)CPU_EQUAL(cpus, &now);
}

int main(int argc, char** argv) {
  REQUIRE(argc == 2, "usage: hygiene PLUGIN");
  setlocale(LC_ALL, "C");
  cpu_set_t thread_cpus;
  pthread_t thread;
  REQUIRE(pthread_create(&thread, NULL, host_thread, &thread_cpus) == 0, "pthread_create");
  const int threads = thread_count();
  capture_output();
  static unsigned char known_fds[1024];
  for (int fd = 0; fd < 1024; ++fd) known_fds[fd] = fcntl(fd, F_GETFD) >= 0;
  State before;
  look(&before);

  void* library = load_plugin(argv[1]);
  require_same(&before, "after dlopen");
  REQUIRE(thread_count() == threads, "dlopen started a thread");

  Net net = open_table(library, kNewest);
  REQUIRE_OK(net_init(&net));
  int ndev = 0;
  REQUIRE_OK(net_devices(&net, &ndev));
  require_same(&before, "after init");
  REQUIRE(thread_count() == threads, "init started a thread");
  REQUIRE(log_has("GPUDirect RDMA off"), "init logged nothing about its devices");

  unsigned char handle[NCCL_NET_HANDLE_MAXSIZE];
  void* listener = NULL;
  REQUIRE_OK(net_listen(&net, 0, handle, &listener));
  void* send = connect_until_done(&net, 0, handle);
  void* receive = accept_until_done(&net, listener);
  static char from[100000] = "bytes";
  static char to[100000];
  void* send_mh = NULL;
  void* receive_mh = NULL;
  REQUIRE_OK(net_reg_mr(&net, send, from, sizeof from, NCCL_PTR_HOST, &send_mh));
  REQUIRE_OK(net_reg_mr(&net, receive, to, sizeof to, NCCL_PTR_HOST, &receive_mh));
  void* receiving = NULL;
  void* sending = NULL;
  REQUIRE_OK(net_irecv(&net, receive, 1, to, sizeof to, receive_mh, &receiving));
  while (sending == NULL) REQUIRE_OK(net_isend(&net, send, from, sizeof from, send_mh, &sending));
  wait_for(&net, receiving, NULL);
  wait_for(&net, sending, NULL);
  REQUIRE(strcmp(to, "bytes") == 0, "the bytes did not arrive");
  require_same(&before, "after a transfer");
  require_close_on_exec(known_fds, "after a transfer");

  REQUIRE_OK(net_dereg_mr(&net, send, send_mh));
  REQUIRE_OK(net_dereg_mr(&net, receive, receive_mh));
  REQUIRE_OK(net_close_listen(&net, listener));
  REQUIRE_OK(net_close_send(&net, send));
  REQUIRE_OK(net_close_recv(&net, receive));
  REQUIRE_OK(net_finalize(&net));
  require_same(&before, "after finalize");
  __atomic_store_n(&g_stop, 1, __ATOMIC_RELEASE);
  void* kept = NULL;
  pthread_join(thread, &kept);
  dup2(g_real_stderr, 2);
  REQUIRE(kept != NULL, "another thread's affinity changed");
  free(before.environment);
  return 0;
}
