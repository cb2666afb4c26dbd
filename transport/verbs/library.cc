// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/library.h"

#include <dlfcn.h>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace ztcp::verbs {
namespace {

constexpr const char* kBase = "IBVERBS_1.1";

std::string last_error() {
  const char* const text = dlerror();
  return text != nullptr ? text : "no reason given";
}

// Takes symbols until one is missing.
class Taker {
 public:
  explicit Taker(void* library) : library_(library) {}

  template <class Function>
  void take(Function*& to, const char* symbol) {
    if (missing_ != nullptr) return;
    take_optional(to, symbol, kBase);
    if (to == nullptr) missing_ = symbol;
  }
  template <class Function>
  void take_optional(Function*& to, const char* symbol, const char* version) {
    to = reinterpret_cast<Function*>(dlvsym(library_, symbol, version));
  }
  const char* missing() const { return missing_; }

 private:
  void* library_;
  const char* missing_ = nullptr;
};

}  // namespace

tl::expected<const Api*, std::string> open_library(const char* name) {
  void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const std::string reason = last_error();
    // Or one that it needs is missing: the reason begins with whose file it is.
    if (reason.starts_with(fmt::format("{}: ", name)) &&
        reason.find("No such file") != std::string::npos)
      return tl::unexpected(
          fmt::format("{} is not installed (apt install ibverbs-providers, or rdma-core)", name));
    return tl::unexpected(fmt::format("{} can't be opened: {}", name, reason));
  }
  // Whoever has one has it for good: never destroyed, threads may be inside when the process ends.
  static std::mutex mutex;
  static auto& kept = *new std::vector<std::unique_ptr<const Api>>;
  auto api = std::make_unique<Api>();
  Taker from(library);
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
  if (from.missing() != nullptr)
    return tl::unexpected(
        fmt::format("{} has no {}@{}: it is no library of rdma-core, or is older than release 22",
                    name, from.missing(), kBase));
  from.take_optional(api->reg_mr_iova2, "ibv_reg_mr_iova2", "IBVERBS_1.8");
  from.take_optional(api->reg_dmabuf_mr, "ibv_reg_dmabuf_mr", "IBVERBS_1.12");
  const std::lock_guard lock(mutex);
  return kept.emplace_back(std::move(api)).get();
}

}  // namespace ztcp::verbs
