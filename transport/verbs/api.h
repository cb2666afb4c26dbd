// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The calls into libibverbs, as a table. The library fills it at run time (library.h), so that the
// plugin also loads on a host without it; tests fill it with a provider in memory. Posting and
// polling are not in the table: the library's header has them as calls of the context's own
// operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <infiniband/verbs.h>
#include <string>

#include "core/result.h"
#include "transport/verbs/cm_api.h"

// The header defines a macro of this name that calls the library directly.
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr

namespace ztcp::verbs {

struct Api {
  ibv_device** (*get_device_list)(int* count) = nullptr;
  void (*free_device_list)(ibv_device** list) = nullptr;
  ibv_context* (*open_device)(ibv_device* device) = nullptr;
  int (*close_device)(ibv_context* context) = nullptr;
  int (*query_device)(ibv_context* context, ibv_device_attr* out) = nullptr;
  // Does not write the members behind link_layer: zero the struct first.
  int (*query_port)(ibv_context* context, std::uint8_t port, ibv_port_attr* out) = nullptr;
  int (*query_gid)(ibv_context* context, std::uint8_t port, int index, ibv_gid* out) = nullptr;
  int (*get_async_event)(ibv_context* context, ibv_async_event* out) = nullptr;
  void (*ack_async_event)(ibv_async_event* event) = nullptr;
  const char* (*event_type_str)(ibv_event_type type) = nullptr;
  ibv_pd* (*alloc_pd)(ibv_context* context) = nullptr;
  int (*dealloc_pd)(ibv_pd* pd) = nullptr;
  ibv_mr* (*reg_mr)(ibv_pd* pd, void* address, std::size_t size, int access) = nullptr;
  int (*dereg_mr)(ibv_mr* mr) = nullptr;
  ibv_cq* (*create_cq)(ibv_context* context, int depth, void* user, ibv_comp_channel* channel,
                       int vector) = nullptr;
  int (*destroy_cq)(ibv_cq* cq) = nullptr;
  ibv_qp* (*create_qp)(ibv_pd* pd, ibv_qp_init_attr* wanted) = nullptr;
  int (*modify_qp)(ibv_qp* qp, ibv_qp_attr* to, int mask) = nullptr;
  int (*destroy_qp)(ibv_qp* qp) = nullptr;
  int (*fork_init)() = nullptr;
  // rdma-core 34 and later; else null.
  ibv_mr* (*reg_dmabuf_mr)(ibv_pd* pd, std::uint64_t offset, std::size_t size, std::uint64_t iova,
                           int fd, int access) = nullptr;
  // rdma-core 29 and later; else null. Takes access flags that older kernels may ignore.
  ibv_mr* (*reg_mr_iova2)(ibv_pd* pd, void* address, std::size_t size, std::uint64_t iova,
                          unsigned access) = nullptr;

  // rdma-core 31 and later; else null. Zero, or an errno.
  int (*query_ece)(ibv_qp* qp, ibv_ece* out) = nullptr;
  int (*set_ece)(ibv_qp* qp, ibv_ece* ece) = nullptr;
  // rdma-core 62 and later; else null. In 100 Mb/s. Zero, or an errno.
  int (*query_port_speed)(ibv_context* context, std::uint32_t port, std::uint64_t* out) = nullptr;

  // The library beside it, which is opened where a device needs it; else why there is none.
  Result<const CmApi*, std::string> (*connection_manager)() = nullptr;
};

}  // namespace ztcp::verbs
