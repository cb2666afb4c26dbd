// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/collective_table.h"

#include <dlfcn.h>
#include <type_traits>

#include "tools/ztcp_perf/failure.h"

namespace ztcp::perf {
namespace {

template <class Table, int kAbi>
class TableCollective final : public CollectiveNet {
  // Sizes and counts are int in older tables.
  using Size = std::conditional_t<(kAbi >= 8), std::size_t, int>;
  using Count = std::conditional_t<(kAbi >= 9), std::size_t, int>;
  using Piece = std::conditional_t<(kAbi >= 9), ncclNetSGE_v9_t, ncclNetSGE_v8_t>;

 public:
  explicit TableCollective(const Table& table) : table_(table) {}

  ncclResult_t init(ncclDebugLogger_t logger) override {
    if constexpr (kAbi >= 11) return table_.init(&context_, /*commId=*/1, logger);
    if constexpr (kAbi < 11) return table_.init(logger);
  }
  ncclResult_t devices(int* count) override { return table_.devices(count); }
  ncclResult_t listen(int device, void* handle, void** comm) override {
    if constexpr (kAbi >= 11) return table_.listen(context_, device, handle, comm);
    if constexpr (kAbi < 11) return table_.listen(device, handle, comm);
  }
  ncclResult_t connect(std::span<void*> handles, int rank, void* listen_comm,
                       void** comm) override {
    return table_.connect(handles.data(), static_cast<int>(handles.size()), rank, listen_comm,
                          comm);
  }
  ncclResult_t reg_mr(void* comm, void* data, std::size_t size, void** mhandle) override {
    return table_.regMr(comm, data, static_cast<Size>(size), NCCL_PTR_HOST, mhandle);
  }
  ncclResult_t dereg_mr(void* comm, void* mhandle) override {
    return table_.deregMr(comm, mhandle);
  }
  ncclResult_t iallreduce(void* comm, void* from, void* to, std::size_t count, void* from_mhandle,
                          void* to_mhandle, void** request) override {
    return table_.iallreduce(comm, from, to, static_cast<Count>(count), ncclFloat32, ncclSum,
                             from_mhandle, to_mhandle, request);
  }
  ncclResult_t iallgather(void* comm, const Window& w, void** request) override {
    if constexpr (kAbi >= 8) {
      Piece all = piece(w);
      return table_.iallgather(comm, w.own, 1, &all, w.part_bytes, w.offset, w.bytes, w.own_mhandle,
                               request);
    }
    fail("ncclCollNetPlugin_v{} has no all-gather; give --abi 8 or more", kAbi);
  }
  ncclResult_t ireducescatter(void* comm, const Window& w, void** request) override {
    if constexpr (kAbi >= 8) {
      Piece all = piece(w);
      return table_.ireducescatter(comm, 1, &all, w.own, w.part_bytes, w.offset, w.bytes,
                                   ncclFloat32, ncclSum, w.own_mhandle, request);
    }
    fail("ncclCollNetPlugin_v{} has no reduce-scatter; give --abi 8 or more", kAbi);
  }
  ncclResult_t test(void* request, int* done, int* size) override {
    return table_.test(request, done, size);
  }
  ncclResult_t close(void* comm) override { return table_.closeColl(comm); }
  ncclResult_t close_listen(void* comm) override { return table_.closeListen(comm); }
  ncclResult_t finalize() override {
    if constexpr (kAbi >= 11) return table_.finalize(context_);
    return ncclSuccess;
  }

 private:
  static Piece piece(const Window& w) {
    return {w.all_mhandle, w.all, static_cast<decltype(Piece::size)>(w.bytes)};
  }

  const Table& table_;
  void* context_ = nullptr;
};

template <class Table, int kAbi>
std::unique_ptr<CollectiveNet> try_collnet_table(void* library, int wanted) {
  if (wanted != kAbi) return nullptr;
  const std::string symbol = fmt::format("ncclCollNetPlugin_v{}", kAbi);
  const auto* table = static_cast<const Table*>(dlsym(library, symbol.c_str()));
  if (table == nullptr) return nullptr;
  return std::make_unique<TableCollective<Table, kAbi>>(*table);
}

}  // namespace

std::unique_ptr<CollectiveNet> load_collective(const std::string& path, int abi) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail("cannot load the plugin: {}", dlerror());
  auto collective = try_collnet_table<ncclCollNet_v12_t, 12>(library, abi);
  if (!collective) collective = try_collnet_table<ncclCollNet_v11_t, 11>(library, abi);
  if (!collective) collective = try_collnet_table<ncclCollNet_v10_t, 10>(library, abi);
  if (!collective) collective = try_collnet_table<ncclCollNet_v9_t, 9>(library, abi);
  if (!collective) collective = try_collnet_table<ncclCollNet_v8_t, 8>(library, abi);
  if (!collective) collective = try_collnet_table<ncclCollNet_v7_t, 7>(library, abi);
  if (!collective) collective = try_collnet_table<ncclCollNet_v6_t, 6>(library, abi);
  if (!collective) fail("{} has no ncclCollNetPlugin_v{}", path, abi);
  return collective;
}

}  // namespace ztcp::perf
