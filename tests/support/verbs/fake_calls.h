// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The functions of libibverbs over the in-memory devices (fake_fabric.h).
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "tests/support/verbs/fake_fabric.h"

namespace ztcp::test {

struct FakeCalls {
  // fake_devices.cc: devices, their ports and events.
  static ibv_device** get_device_list(int* count);
  static void free_device_list(ibv_device** list);
  static ibv_context* open_device(ibv_device* device);
  static int close_device(ibv_context* context);
  static int query_device(ibv_context* context, ibv_device_attr* out);
  static int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* out);
  static int query_port_speed(ibv_context* context, std::uint32_t port, std::uint64_t* out);
  static int query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* out);
  static int get_async_event(ibv_context* context, ibv_async_event* out);
  static void ack_async_event(ibv_async_event*);
  static const char* event_type_str(ibv_event_type type);
  static int fork_init() { return 0; }

  // fake_memory.cc: protection domains and memory regions.
  static ibv_pd* alloc_pd(ibv_context* context);
  static int dealloc_pd(ibv_pd* pd);
  static ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t size, int access);
  static ibv_mr* reg_mr_iova2(ibv_pd* pd, void* address, std::size_t size, std::uint64_t,
                              unsigned access);
  static ibv_mr* reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t size,
                               std::uint64_t iova, int fd, int access);
  static int dereg_mr(ibv_mr* mr);

  // fake_queues.cc: queue pairs and completion queues.
  static ibv_cq* create_cq(ibv_context* context, int depth, void*, ibv_comp_channel*, int);
  static int destroy_cq(ibv_cq* cq);
  static ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* wanted);
  static int modify_qp(ibv_qp* qp, ibv_qp_attr* to, int mask);
  static int destroy_qp(ibv_qp* qp);
  static int query_ece(ibv_qp* qp, ibv_ece* out);
  static int set_ece(ibv_qp* qp, ibv_ece* ece);
  static int post_send(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad);
  static int post_recv(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad);
  static int poll_cq(ibv_cq* cq, int most, ibv_wc* out);

  // fake_calls.cc: the table of all of them.
  static const verbs::Api& table();

 private:
  friend class FakeFabric;
  using Lock = std::lock_guard<std::mutex>;

  static int refuse(int sys_errno) {
    errno = sys_errno;
    return sys_errno;
  }
  static FakeCounts& counts_of(ibv_context* context) {
    return static_cast<FakeContext*>(context)->fake->counts;
  }
  static FakeFabric& fabric_of(ibv_context* context) {
    return *static_cast<FakeContext*>(context)->fabric;
  }
  static ibv_mr* add_memory(ibv_pd* pd, void* address, std::size_t size, unsigned access,
                            std::shared_ptr<MemoryRegion> region);

  friend struct FakeManager;

  static FakeFabric* the_fabric;  // Only one exists at a time.
};

}  // namespace ztcp::test
