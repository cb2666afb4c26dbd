// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/library.h"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/shared_library.h"

namespace ztcp::verbs {
namespace {

constexpr const char* kBase = "IBVERBS_1.1";
constexpr const char* kManagerBase = "RDMACM_1.0";

// Never destroyed: threads may be inside a call when the process ends.
template <class Table>
const Table* keep(std::unique_ptr<const Table> table) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<std::unique_ptr<const Table>>;
  const std::lock_guard lock(mutex);
  return kept.emplace_back(std::move(table)).get();
}

}  // namespace

Result<const Api*, std::string> open_library(const char* name) {
  void* const library = ZTCP_TRY(open_shared_library(name, kVerbsPackages));
  auto api = std::make_unique<Api>();
  SymbolTaker from(library, kBase);
  from.take(api->get_device_list, "ibv_get_device_list");
  from.take(api->free_device_list, "ibv_free_device_list");
  from.take(api->open_device, "ibv_open_device");
  from.take(api->close_device, "ibv_close_device");
  from.take(api->query_device, "ibv_query_device");
  from.take(api->query_port, "ibv_query_port");
  from.take(api->query_gid, "ibv_query_gid");
  from.take(api->get_async_event, "ibv_get_async_event");
  from.take(api->ack_async_event, "ibv_ack_async_event");
  from.take(api->event_type_str, "ibv_event_type_str");
  from.take(api->alloc_pd, "ibv_alloc_pd");
  from.take(api->dealloc_pd, "ibv_dealloc_pd");
  from.take(api->reg_mr, "ibv_reg_mr");
  from.take(api->dereg_mr, "ibv_dereg_mr");
  from.take(api->create_cq, "ibv_create_cq");
  from.take(api->destroy_cq, "ibv_destroy_cq");
  from.take(api->create_qp, "ibv_create_qp");
  from.take(api->modify_qp, "ibv_modify_qp");
  from.take(api->destroy_qp, "ibv_destroy_qp");
  from.take(api->fork_init, "ibv_fork_init");
  if (std::string fault = from.fault(name); !fault.empty()) return tl::unexpected(std::move(fault));
  from.take_optional(api->reg_mr_iova2, "ibv_reg_mr_iova2", "IBVERBS_1.8");
  from.take_optional(api->reg_dmabuf_mr, "ibv_reg_dmabuf_mr", "IBVERBS_1.12");
  from.take_optional(api->query_ece, "ibv_query_ece", "IBVERBS_1.10");
  from.take_optional(api->set_ece, "ibv_set_ece", "IBVERBS_1.10");
  if (api->query_ece == nullptr || api->set_ece == nullptr) api->query_ece = nullptr;
  from.take_optional(api->query_port_speed, "ibv_query_port_speed", "IBVERBS_1.16");
  api->connection_manager = [] { return open_manager(); };
  return keep<Api>(std::move(api));
}

Result<const Api*, std::string> open_library_for(const NcclVariables& variables) {
  if (!variables.library.empty()) {
    auto named = open_library(variables.library.c_str());
    if (named) return named;
    log::warn("NCCL_IBVERBS_LIB={}: {}; {} is taken instead", variables.library, named.error(),
              kLibrary);
  }
  return open_library();
}

Result<const CmApi*, std::string> open_manager(const char* name) {
  void* const library = ZTCP_TRY(open_shared_library(name, "apt install librdmacm1, or librdmacm"));
  auto api = std::make_unique<CmApi>();
  SymbolTaker from(library, kManagerBase);
  from.take(api->create_event_channel, "rdma_create_event_channel");
  from.take(api->destroy_event_channel, "rdma_destroy_event_channel");
  from.take(api->create_id, "rdma_create_id");
  from.take(api->destroy_id, "rdma_destroy_id");
  from.take(api->bind_addr, "rdma_bind_addr");
  from.take(api->listen, "rdma_listen");
  from.take(api->resolve_addr, "rdma_resolve_addr");
  from.take(api->resolve_route, "rdma_resolve_route");
  from.take(api->connect, "rdma_connect");
  from.take(api->accept, "rdma_accept");
  from.take(api->reject, "rdma_reject");
  from.take(api->get_cm_event, "rdma_get_cm_event");
  from.take(api->ack_cm_event, "rdma_ack_cm_event");
  from.take(api->event_str, "rdma_event_str");
  from.take(api->get_src_port, "rdma_get_src_port");
  if (std::string fault = from.fault(name); !fault.empty()) return tl::unexpected(std::move(fault));
  return keep<CmApi>(std::move(api));
}

}  // namespace ztcp::verbs
