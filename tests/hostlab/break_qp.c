// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Breaks queue pairs of a running process, as a NIC does that gives one up: through the process's
// own descriptor of the device, with kernel verbs, it moves each to the state ERR. The process
// learns of it only through the events and completions of its queue pairs.
//
// usage: break_qp PID uverbs0     prints how many it broke
#include <dirent.h>
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kStateMask = 1, kStateErr = 6, kMostHandles = 4096 };

// The process's descriptor of the device; -1: it has none.
static int uverbs_of(pid_t pid, const char* device) {
  char folder[64], path[512], target[512], wanted[64];
  snprintf(folder, sizeof folder, "/proc/%d/fd", pid);
  snprintf(wanted, sizeof wanted, "/dev/infiniband/%s", device);
  DIR* const fds = opendir(folder);
  int found = -1;
  for (struct dirent* one; fds != NULL && found < 0 && (one = readdir(fds)) != NULL;) {
    snprintf(path, sizeof path, "%s/%s", folder, one->d_name);
    const ssize_t size = readlink(path, target, sizeof target - 1);
    if (size <= 0) continue;
    target[size] = '\0';
    if (strcmp(target, wanted) == 0) found = atoi(one->d_name);
  }
  if (fds != NULL) closedir(fds);
  if (found < 0) return -1;
  const int process = (int)syscall(SYS_pidfd_open, pid, 0);
  return process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, found, 0);
}

// 0, or an errno: most handles are of other objects.
static int break_pair(int uverbs, unsigned handle) {
  struct ib_uverbs_modify_qp modify = {
      .qp_handle = handle, .attr_mask = kStateMask, .qp_state = kStateErr};
  struct {
    struct ib_uverbs_ioctl_hdr head;
    struct ib_uverbs_attr attrs[2];
  } call = {.head = {.length = sizeof call,
                     .object_id = UVERBS_OBJECT_DEVICE,
                     .method_id = UVERBS_METHOD_INVOKE_WRITE,
                     .num_attrs = 2,
                     .driver_id = RDMA_DRIVER_RXE}};
  call.attrs[0] = (struct ib_uverbs_attr){.attr_id = UVERBS_ATTR_CORE_IN,
                                          .len = sizeof modify,
                                          .flags = UVERBS_ATTR_F_MANDATORY,
                                          .data = (__u64)(unsigned long)&modify};
  call.attrs[1] = (struct ib_uverbs_attr){.attr_id = UVERBS_ATTR_WRITE_CMD,
                                          .len = sizeof(__u64),
                                          .flags = UVERBS_ATTR_F_MANDATORY,
                                          .data = IB_USER_VERBS_CMD_MODIFY_QP};
  return ioctl(uverbs, RDMA_VERBS_IOCTL, &call) == 0 ? 0 : errno;
}

int main(int argc, char** argv) {
  if (argc != 3) return fprintf(stderr, "usage: break_qp PID uverbs0\n"), 2;
  const int uverbs = uverbs_of(atoi(argv[1]), argv[2]);
  if (uverbs < 0)
    return fprintf(stderr, "process %s has no %s: %s\n", argv[1], argv[2], strerror(errno)), 1;
  unsigned broken = 0;
  int other = 0;
  for (unsigned handle = 0; handle < kMostHandles; ++handle) {
    const int error = break_pair(uverbs, handle);
    if (error == 0)
      ++broken;
    else if (error != EINVAL && error != ENOENT)
      other = error;
  }
  printf("%u\n", broken);
  if (broken == 0) fprintf(stderr, "no queue pair was broken: %s\n", strerror(other));
  return broken == 0;
}
