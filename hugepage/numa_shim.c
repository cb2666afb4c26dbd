// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The seven libnuma calls that DPDK's memory set-up makes, over the kernel's own system calls.
// libnuma.so.1 is absent from slim images and libnuma.a is not position independent, so the plugin
// can carry neither. Implements only the calls of rte_eal and the drivers; a node mask of 1024 bits
// is the kernel's own upper bound (CONFIG_NODES_SHIFT <= 10).
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kMaxNodes = 1024, kBitsPerWord = 8 * sizeof(unsigned long) };
enum { kMpolPreferred = 1, kMpolLocal = 4, kMpolDefault = 0 };

// Laid out as numa.h declares it: DPDK reads both members.
struct bitmask {
  unsigned long size;  // In bits.
  unsigned long* maskp;
};

int numa_available(void);
struct bitmask* numa_allocate_nodemask(void);
void numa_bitmask_free(struct bitmask* mask);
void numa_set_preferred(int node);
void numa_set_localalloc(void);
long get_mempolicy(int* mode, unsigned long* mask, unsigned long max_node, void* address,
                   unsigned flags);
long set_mempolicy(int mode, const unsigned long* mask, unsigned long max_node);

long get_mempolicy(int* mode, unsigned long* mask, unsigned long max_node, void* address,
                   unsigned flags) {
  return syscall(SYS_get_mempolicy, mode, mask, max_node, address, flags);
}

long set_mempolicy(int mode, const unsigned long* mask, unsigned long max_node) {
  return syscall(SYS_set_mempolicy, mode, mask, max_node);
}

int numa_available(void) {
  // EPERM comes from a container's seccomp filter: NUMA exists, but this process may not control
  // it.
  if (get_mempolicy(NULL, NULL, 0, NULL, 0) < 0 && (errno == ENOSYS || errno == EPERM)) return -1;
  return 0;
}

struct bitmask* numa_allocate_nodemask(void) {
  struct bitmask* mask = calloc(1, sizeof(*mask) + kMaxNodes / 8);
  if (mask == NULL) return NULL;
  mask->size = kMaxNodes;
  mask->maskp = (unsigned long*)(mask + 1);
  return mask;
}

void numa_bitmask_free(struct bitmask* mask) { free(mask); }

void numa_set_preferred(int node) {
  if (node < 0 || node >= kMaxNodes) {
    numa_set_localalloc();
    return;
  }
  unsigned long mask[kMaxNodes / kBitsPerWord];
  memset(mask, 0, sizeof(mask));
  mask[(unsigned)node / kBitsPerWord] = 1UL << ((unsigned)node % kBitsPerWord);
  set_mempolicy(kMpolPreferred, mask, kMaxNodes + 1);
}

void numa_set_localalloc(void) {
  // MPOL_LOCAL needs Linux 3.8; the default policy that older kernels have also means local.
  if (set_mempolicy(kMpolLocal, NULL, 0) < 0) set_mempolicy(kMpolDefault, NULL, 0);
}
