/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors
 *
 * Two transports in one process: ustack's devices, and those of an in-memory transport with the
 * abilities of an RDMA NIC. The device chooses the transport of a listen, the handle that of a
 * connect; both carry bytes at once.
 *
 *   transports PLUGIN [VERSION]
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/abi/driver.h"

enum { kUstack = 0, kMemory = 2, kOtherMemory = 3, kDevices = 4 };
enum { kSlot = 64 << 10, kBytes = 4 << 20 };
enum { kAllPointers = NCCL_PTR_HOST | NCCL_PTR_CUDA | NCCL_PTR_DMABUF };

/* Host memory: both are the same. GPU memory: only the transport may access `data`; `seen` is the
 * GPU's view. */
typedef struct {
  unsigned char* data;
  unsigned char* seen;
  int fd;
  int type;
} Memory;

typedef struct {
  const Net* net;
  int device;
  int max_recvs;
  void* listener;
  void* send;
  void* recv;
  Memory from;
  Memory to;
  void* from_mh;
  void* to_mh;
} Pair;

static Memory host_memory(void) {
  unsigned char* bytes = calloc(1, kBytes);
  return (Memory){bytes, bytes, -1, NCCL_PTR_HOST};
}

static Memory gpu_memory(void) {
  const int fd = memfd_create("gpu", MFD_CLOEXEC);
  REQUIRE(fd >= 0 && ftruncate(fd, kBytes) == 0, "memfd");
  void* data = mmap(NULL, kBytes, PROT_NONE, MAP_SHARED, fd, 0);
  void* seen = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  REQUIRE(data != MAP_FAILED && seen != MAP_FAILED, "mmap");
  return (Memory){data, seen, fd, NCCL_PTR_CUDA};
}

static void release(Memory* memory) {
  if (memory->fd < 0) {
    free(memory->data);
    return;
  }
  munmap(memory->data, kBytes);
  munmap(memory->seen, kBytes);
  close(memory->fd);
}

/* GPU memory as NCCL registers it where it can: by DMA-BUF. */
static void* registered(const Net* net, void* comm, const Memory* memory, int by_dma_buf) {
  void* mh = NULL;
  if (memory->type == NCCL_PTR_CUDA && by_dma_buf)
    REQUIRE_OK(net_reg_dma_buf(net, comm, memory->data, kBytes, memory->type, 0, memory->fd, &mh));
  else
    REQUIRE_OK(net_reg_mr(net, comm, memory->data, kBytes, memory->type, &mh));
  return mh;
}

static Pair open_pair(const Net* net, int listening, int connecting, Memory from, Memory to,
                      int by_dma_buf) {
  Pair p = {.net = net, .device = listening, .from = from, .to = to};
  Properties properties;
  REQUIRE_OK(net_properties(net, listening, &properties));
  p.max_recvs = properties.max_recvs;
  unsigned char handle[NCCL_NET_HANDLE_MAXSIZE];
  REQUIRE_OK(net_listen(net, listening, handle, &p.listener));
  p.send = connect_until_done(net, connecting, handle);
  p.recv = accept_until_done(net, p.listener);
  p.from_mh = registered(net, p.send, &p.from, by_dma_buf);
  p.to_mh = registered(net, p.recv, &p.to, by_dma_buf);
  return p;
}

static unsigned char byte_of(size_t i, int slot, unsigned seed) {
  return (unsigned char)(i * 7 + i / 251 + (size_t)slot * 61 + seed * 17 + 1);
}

/* A group in flight: `n` messages of different sizes, each in a slot of the buffers. The arrays are
 * those that NCCL passes. */
typedef struct {
  Pair* pair;
  int n;
  unsigned seed;
  size_t sent[kMaxGroup];
  void* to[kMaxGroup];
  size_t room[kMaxGroup];
  int tags[kMaxGroup];
  void* mhs[kMaxGroup];
  void* sends[kMaxGroup];
  void* receive;
} Group;

static Group post_receives(Pair* p, int n, unsigned seed) {
  Group g = {.pair = p, .n = n, .seed = seed};
  memset(p->to.seen, 0xee, (size_t)n * kSlot);
  for (int i = 0; i < n; ++i) {
    const size_t at = (size_t)i * kSlot;
    g.sent[i] = ((size_t)i * 9973 + seed * 131) % (kSlot - 1);
    g.to[i] = p->to.data + at;
    g.room[i] = kSlot;
    g.tags[i] = 100 + i;
    g.mhs[i] = p->to_mh;
    for (size_t k = 0; k < g.sent[i]; ++k) p->from.seen[at + k] = byte_of(k, i, seed);
  }
  while (g.receive == NULL)
    REQUIRE_OK(net_irecv_group(p->net, p->recv, n, g.to, g.room, g.tags, g.mhs, &g.receive));
  return g;
}

/* Another order than the buffers': 5 is prime to every size but 5. */
static int shuffled(const Group* g, int i) {
  return g->n == 5 ? g->n - 1 - i : (i * 5 + (int)g->seed) % g->n;
}

static void post_sends(Group* g) {
  const Pair* p = g->pair;
  for (int k = 0; k < g->n; ++k) {
    const int i = shuffled(g, k);
    while (g->sends[i] == NULL)
      REQUIRE_OK(net_isend_tagged(p->net, p->send, p->from.data + (size_t)i * kSlot, g->sent[i],
                                  g->tags[i], p->from_mh, &g->sends[i]));
  }
}

static void flush(Group* g) {
  const Pair* p = g->pair;
  const int is_gpu = p->to.type == NCCL_PTR_CUDA;
  if (is_gpu)
    for (int i = 0; i < g->n; ++i)
      REQUIRE(p->to.seen[(size_t)i * kSlot] == 0xee, "bytes are visible before a flush");
  void* request = NULL;
  REQUIRE_OK(net_flush_group(p->net, p->recv, g->n, g->to, g->room, g->mhs, &request));
  REQUIRE((request != NULL) == (is_gpu && p->net->version > kOldest), "a flush request of %p",
          request);
  if (request != NULL) wait_for(p->net, request, NULL);
}

static void finish(Group* g) {
  const Pair* p = g->pair;
  int sizes[kMaxGroup + 1];
  for (int i = 0; i <= g->n; ++i) sizes[i] = -7;
  wait_for(p->net, g->receive, sizes);
  REQUIRE(sizes[g->n] == -7, "test() wrote more than %d sizes", g->n);
  for (int i = 0; i < g->n; ++i) wait_for(p->net, g->sends[i], NULL);
  flush(g);
  for (int i = 0; i < g->n; ++i) {
    const unsigned char* bytes = p->to.seen + (size_t)i * kSlot;
    const size_t size = g->sent[i];
    REQUIRE(sizes[i] == (int)size, "buffer %d of %d has %d bytes instead of %zu", i, g->n, sizes[i],
            size);
    for (size_t k = 0; k < kSlot; ++k)
      REQUIRE(bytes[k] == (k < size ? byte_of(k, i, g->seed) : 0xee), "byte %zu of %d in %d", k, i,
              g->n);
  }
}

/* All pairs at once, with groups of `n` as far as their devices support it. */
static void exchange(Pair* pairs, int count, int n, unsigned seed) {
  Group groups[4];
  REQUIRE(count <= 4, "%d pairs", count);
  for (int i = 0; i < count; ++i) {
    const int fits = n < pairs[i].max_recvs ? n : pairs[i].max_recvs;
    groups[i] = post_receives(&pairs[i], fits, seed + (unsigned)i);
  }
  for (int i = 0; i < count; ++i) post_sends(&groups[count - 1 - i]);
  for (int i = 0; i < count; ++i) finish(&groups[(i + (int)seed) % count]);
}

/* Closes one end at a time, in the given order; other pairs go on. */
static void close_pair(Pair* p, unsigned order) {
  REQUIRE_OK(net_dereg_mr(p->net, p->send, p->from_mh));
  REQUIRE_OK(net_dereg_mr(p->net, p->recv, p->to_mh));
  for (unsigned step = 0; step < 3; ++step) {
    switch ((step * (1 + order / 3 % 2) + order) % 3) {
      case 0:
        REQUIRE_OK(net_close_send(p->net, p->send));
        break;
      case 1:
        REQUIRE_OK(net_close_recv(p->net, p->recv));
        break;
      default:
        REQUIRE_OK(net_close_listen(p->net, p->listener));
    }
  }
  release(&p->from);
  release(&p->to);
}

static void look_at_devices(const Net* net) {
  static const char* const kNames[kDevices] = {"ztcp0", "ztcp1", "memory0", "memory1"};
  int ndev = 0;
  REQUIRE_OK(net_devices(net, &ndev));
  REQUIRE(ndev == kDevices, "%d devices", ndev);
  for (int dev = 0; dev < ndev; ++dev) {
    Properties properties;
    REQUIRE_OK(net_properties(net, dev, &properties));
    REQUIRE(strcmp(properties.name, kNames[dev]) == 0, "device %d is %s", dev, properties.name);
    REQUIRE(properties.ptr_support == (dev < kMemory ? NCCL_PTR_HOST : kAllPointers),
            "ptrSupport of %s is %d", properties.name, properties.ptr_support);
    if (dev >= kMemory && net->version >= kFirstWithTags)
      REQUIRE(properties.max_recvs == kMaxGroup, "maxRecvs %d", properties.max_recvs);
  }
  REQUIRE(log_has("memory0: ") && log_has("GPUDirect RDMA on"),
          "the transport does not describe it");
}

/* A connect with a handle of the other transport: refused, with both names. */
static void mismatch(const Net* net, int listening, int connecting, const char* said) {
  unsigned char handle[NCCL_NET_HANDLE_MAXSIZE];
  void* listener = NULL;
  REQUIRE_OK(net_listen(net, listening, handle, &listener));
  void* comm = NULL;
  REQUIRE(net_connect(net, connecting, handle, &comm) != ncclSuccess, "%d met %d", connecting,
          listening);
  REQUIRE(comm == NULL, "a failed connect left a comm");
  REQUIRE(log_has(said), "not said: %s", said);
  REQUIRE_OK(net_close_listen(net, listener));
}

static void refuse_gpu_memory(const Pair* pair) {
  Memory gpu = gpu_memory();
  void* mh = NULL;
  REQUIRE(net_reg_mr(pair->net, pair->recv, gpu.data, kBytes, NCCL_PTR_CUDA, &mh) != ncclSuccess,
          "a device without GPUDirect registered GPU memory");
  if (pair->net->version >= kFirstWithDmaBuf)
    REQUIRE(net_reg_dma_buf(pair->net, pair->recv, gpu.data, kBytes, NCCL_PTR_CUDA, 0, gpu.fd,
                            &mh) != ncclSuccess,
            "a device without GPUDirect took a DMA-BUF");
  release(&gpu);
}

/* The second half of a DMA-BUF can be registered; one byte more than it has is refused. */
static void offsets(const Pair* pair) {
  if (pair->net->version < kFirstWithDmaBuf) return;
  const Net* net = pair->net;
  enum { kHalf = kBytes / 2, kSize = 4096 };
  Memory gpu = gpu_memory();
  void* mh = NULL;
  REQUIRE(net_reg_dma_buf(net, pair->recv, gpu.data + kHalf, kHalf, NCCL_PTR_CUDA, kHalf + 1,
                          gpu.fd, &mh) != ncclSuccess,
          "a DMA-BUF that ends before the region was taken");
  REQUIRE(log_has("by DMA-BUF failed"), "the DMA-BUF is not named");
  REQUIRE_OK(
      net_reg_dma_buf(net, pair->recv, gpu.data + kHalf, kHalf, NCCL_PTR_CUDA, kHalf, gpu.fd, &mh));
  void* to = gpu.data + kHalf;
  const size_t size = kSize;
  memset(pair->from.seen, 0x42, kSize);
  void* receive = NULL;
  void* send = NULL;
  void* flushing = NULL;
  REQUIRE_OK(net_irecv(net, pair->recv, 1, to, size, mh, &receive));
  while (send == NULL)
    REQUIRE_OK(net_isend(net, pair->send, pair->from.data, size, pair->from_mh, &send));
  wait_for(net, receive, NULL);
  wait_for(net, send, NULL);
  REQUIRE_OK(net_flush(net, pair->recv, to, size, mh, &flushing));
  wait_for(net, flushing, NULL);
  REQUIRE(gpu.seen[kHalf - 1] == 0 && gpu.seen[kHalf] == 0x42, "not at the offset");
  REQUIRE_OK(net_dereg_mr(net, pair->recv, mh));
  release(&gpu);
}

static void run(void* library, int version) {
  Net net = open_table(library, version);
  REQUIRE_OK(net_init(&net));
  look_at_devices(&net);
  for (unsigned order = 0; order < 6; ++order) {
    const int by_dma_buf = version >= kFirstWithDmaBuf && order % 2 == 0;
    Pair pairs[4];
    pairs[0] = open_pair(&net, kUstack, kUstack, host_memory(), host_memory(), 0);
    pairs[1] = open_pair(&net, kMemory, kOtherMemory, host_memory(), gpu_memory(), by_dma_buf);
    pairs[2] = open_pair(&net, kUstack, kUstack, host_memory(), host_memory(), 0);
    pairs[3] = open_pair(&net, kOtherMemory, kMemory, gpu_memory(), host_memory(), by_dma_buf);
    const int most = version >= kFirstWithTags ? kMaxGroup : 1;
    for (int n = 1; n <= most; ++n) exchange(pairs, 4, n, order * 10 + (unsigned)n);
    if (order == 0) {
      mismatch(&net, kUstack, kMemory,
               "it carries RDMA verbs, the peer listens with userspace TCP");
      mismatch(&net, kOtherMemory, kUstack,
               "it carries userspace TCP, the peer listens with RDMA verbs");
      refuse_gpu_memory(&pairs[0]);
      offsets(&pairs[1]);
    }
    /* Alternates between the transports, each time with another first; the remaining pairs go on.
     */
    for (unsigned i = 0; i < 4; ++i) {
      close_pair(&pairs[i], order + i);
      exchange(pairs + i + 1, 3 - (int)i, most, order + i);
    }
  }
  REQUIRE_OK(net_finalize(&net));
  printf("v%d: both transports\n", version);
}

int main(int argc, char** argv) {
  REQUIRE(argc >= 2, "usage: transports PLUGIN [VERSION]");
  alarm(100);
  void* library = load_plugin(argv[1]);
  for (int version = kOldest; version <= kNewest; ++version)
    if (argc < 3 || atoi(argv[2]) == version) run(library, version);
  return 0;
}
