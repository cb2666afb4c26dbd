/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors
 *
 * The part of libcuda.so.1 that a software NIC calls, with a simulated GPU: its memory is mapped
 * without access rights, as the CPU can't reach a real GPU's, and the "driver" moves bytes through
 * a second mapping. Its DMA-BUF is the memory's memfd, with the same size and closed like one. */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kMostRanges = 64, kInvalidValue = 1 };
enum { kMemoryType = 2, kDeviceOrdinal = 9, kRangeStart = 11, kRangeSize = 12, kDeviceMemory = 2 };

typedef struct {
  unsigned long long address;
  size_t size;
  char* seen; /* The GPU's mapping. */
} Range;

static Range ranges[kMostRanges];
static int range_count;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

#define EXPORT __attribute__((visibility("default")))

static char* seen_at(unsigned long long address, size_t size) {
  for (int i = 0; i < range_count; ++i)
    if (address >= ranges[i].address && address + size <= ranges[i].address + ranges[i].size)
      return ranges[i].seen + (address - ranges[i].address);
  return NULL;
}

/* --- For tests: memory that lives as long as the process. ------------------------------------- */
EXPORT void* paper_gpu_alloc(size_t size, int* dmabuf_fd) {
  const int fd = memfd_create("paper gpu", MFD_CLOEXEC);
  if (fd < 0 || range_count == kMostRanges || ftruncate(fd, (off_t)size) != 0) return NULL;
  void* const address = mmap(NULL, size, PROT_NONE, MAP_SHARED, fd, 0);
  void* const seen = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  pthread_mutex_lock(&mutex);
  ranges[range_count++] = (Range){(unsigned long long)address, size, seen};
  pthread_mutex_unlock(&mutex);
  *dmabuf_fd = fd;
  return address;
}
EXPORT void* paper_gpu_seen(void* address) { return seen_at((unsigned long long)address, 1); }

/* --- Functions of the driver ------------------------------------------------------------------ */
EXPORT int cuPointerGetAttribute(void* out, int attribute, unsigned long long address) {
  int outcome = kInvalidValue;
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < range_count; ++i) {
    const Range* const range = &ranges[i];
    if (address < range->address || address >= range->address + range->size) continue;
    outcome = 0;
    if (attribute == kMemoryType)
      *(unsigned*)out = kDeviceMemory;
    else if (attribute == kDeviceOrdinal)
      *(int*)out = 0;
    else if (attribute == kRangeStart)
      *(unsigned long long*)out = range->address;
    else if (attribute == kRangeSize)
      *(size_t*)out = range->size;
    else
      outcome = kInvalidValue;
  }
  pthread_mutex_unlock(&mutex);
  return outcome;
}
EXPORT int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? 0 : kInvalidValue;
}
EXPORT int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = ranges;
  return device == 0 ? 0 : kInvalidValue;
}
EXPORT int cuCtxPushCurrent_v2(void* context) { return context == ranges ? 0 : kInvalidValue; }
EXPORT int cuCtxPopCurrent_v2(void** context) {
  *context = ranges;
  return 0;
}
EXPORT int cuStreamCreate(void** stream, unsigned flags) {
  *stream = ranges;
  /* A stream that waits for others would wait for kernels that wait for it. */
  return flags == 1 ? 0 : kInvalidValue;
}
EXPORT int cuStreamSynchronize(void* stream) { return stream == ranges ? 0 : kInvalidValue; }
EXPORT int cuMemHostAlloc(void** memory, size_t size, unsigned flags) {
  (void)flags;
  *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return *memory != MAP_FAILED ? 0 : kInvalidValue;
}
EXPORT int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t size,
                                void* stream) {
  char* const seen = seen_at(to, size);
  if (seen == NULL || stream != ranges) return kInvalidValue;
  memcpy(seen, from, size);
  return 0;
}
EXPORT int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t size, void* stream) {
  const char* const seen = seen_at(from, size);
  if (seen == NULL || stream != ranges) return kInvalidValue;
  memcpy(to, seen, size);
  return 0;
}
