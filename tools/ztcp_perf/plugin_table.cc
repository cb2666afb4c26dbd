// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/plugin_table.h"

#include <array>
#include <cstring>
#include <dlfcn.h>
#include <tuple>
#include <type_traits>
#include <unistd.h>

#include "tools/ztcp_perf/failure.h"

namespace ztcp::perf {
namespace {

// Parameter types of a table's function, to tell versions of a signature apart.
template <class F>
struct Signature;
template <class... Args>
struct Signature<ncclResult_t (*)(Args...)> {
  static constexpr std::size_t kCount = sizeof...(Args);
  template <std::size_t I>
  using Arg = std::tuple_element_t<I, std::tuple<Args...>>;
};

template <class Table, int kAbi>
class TableNet final : public Net {
  template <auto Member>
  using Of = Signature<std::remove_reference_t<decltype(std::declval<Table>().*Member)>>;

 public:
  explicit TableNet(const Table& table) : table_(table) {}

  int abi() const override { return kAbi; }
  const char* name() const override { return table_.name; }

  ncclResult_t init(ncclDebugLogger_t logger) override {
    if constexpr (kAbi >= 11) {
      ncclNetCommConfig_v10_t config{NCCL_NET_TRAFFIC_CLASS_UNDEF};
      return table_.init(&context_, /*commId=*/1, &config, logger, nullptr);
    } else if constexpr (kAbi == 10) {
      return table_.init(logger, nullptr);
    } else {
      return table_.init(logger);
    }
  }
  ncclResult_t devices(int* count) override { return table_.devices(count); }
  ncclResult_t properties(int device, DeviceProperties* out) override {
    using Props = std::remove_pointer_t<typename Of<&Table::getProperties>::template Arg<1>>;
    Props props;
    std::memset(&props, 0x5a, sizeof props);  // NCCL does not clear it either.
    props.name = nullptr;
    props.pciPath = nullptr;
    const ncclResult_t result = table_.getProperties(device, &props);
    if (result != ncclSuccess) return result;
    out->name = props.name != nullptr ? props.name : "";
    out->pci_path = props.pciPath != nullptr ? props.pciPath : "";
    out->speed_mbps = props.speed;
    out->pointer_support = props.ptrSupport;
    out->max_receives = props.maxRecvs;
    return result;
  }
  ncclResult_t listen(int device, void* handle, void** comm) override {
    if constexpr (kAbi >= 11) return table_.listen(context_, device, handle, comm);
    if constexpr (kAbi < 11) return table_.listen(device, handle, comm);
  }
  ncclResult_t connect(int device, void* handle, void** comm) override {
    [[maybe_unused]] ncclNetDeviceHandle_v7_t* device_handle = nullptr;
    [[maybe_unused]] ncclNetCommConfig_v10_t config{NCCL_NET_TRAFFIC_CLASS_UNDEF};
    if constexpr (kAbi >= 11) return table_.connect(context_, device, handle, comm, &device_handle);
    if constexpr (kAbi == 10) return table_.connect(device, &config, handle, comm, &device_handle);
    if constexpr (kAbi >= 7 && kAbi < 10)
      return table_.connect(device, handle, comm, &device_handle);
    if constexpr (kAbi < 7) return table_.connect(device, handle, comm);
  }
  ncclResult_t accept(void* listen_comm, void** comm) override {
    [[maybe_unused]] ncclNetDeviceHandle_v7_t* device_handle = nullptr;
    if constexpr (kAbi >= 7) return table_.accept(listen_comm, comm, &device_handle);
    if constexpr (kAbi < 7) return table_.accept(listen_comm, comm);
  }
  ncclResult_t reg_mr(void* comm, void* data, std::size_t size, void** mhandle) override {
    using Size = typename Of<&Table::regMr>::template Arg<2>;
    return table_.regMr(comm, data, static_cast<Size>(size), NCCL_PTR_HOST, mhandle);
  }
  ncclResult_t dereg_mr(void* comm, void* mhandle) override {
    return table_.deregMr(comm, mhandle);
  }
  ncclResult_t isend(void* comm, void* data, std::size_t size, int tag, void* mhandle,
                     void** request) override {
    using Size = typename Of<&Table::isend>::template Arg<2>;
    if constexpr (kAbi >= 10) return table_.isend(comm, data, size, tag, mhandle, nullptr, request);
    if constexpr (kAbi < 10)
      return table_.isend(comm, data, static_cast<Size>(size), tag, mhandle, request);
  }
  ncclResult_t irecv(void* comm, std::span<const ReceivePart> parts, void** request) override {
    using Size = std::remove_pointer_t<typename Of<&Table::irecv>::template Arg<3>>;
    std::array<void*, kMaxParts> data{};
    std::array<Size, kMaxParts> sizes{};
    std::array<int, kMaxParts> tags{};
    std::array<void*, kMaxParts> mhandles{};
    for (std::size_t i = 0; i < parts.size(); ++i) {
      data[i] = parts[i].data;
      sizes[i] = static_cast<Size>(parts[i].size_bytes);
      tags[i] = parts[i].tag;
      mhandles[i] = parts[i].mhandle;
    }
    const int n = static_cast<int>(parts.size());
    if constexpr (kAbi >= 10)
      return table_.irecv(comm, n, data.data(), sizes.data(), tags.data(), mhandles.data(), nullptr,
                          request);
    if constexpr (kAbi < 10)
      return table_.irecv(comm, n, data.data(), sizes.data(), tags.data(), mhandles.data(),
                          request);
  }
  ncclResult_t test(void* request, int* done, int* sizes) override {
    return table_.test(request, done, sizes);
  }
  ncclResult_t close_send(void* comm) override { return table_.closeSend(comm); }
  ncclResult_t close_recv(void* comm) override { return table_.closeRecv(comm); }
  ncclResult_t close_listen(void* comm) override { return table_.closeListen(comm); }
  ncclResult_t finalize() override {
    if constexpr (kAbi >= 11) return table_.finalize(context_);
    return ncclSuccess;
  }

 private:
  const Table& table_;
  void* context_ = nullptr;
};

template <class Table, int kAbi>
std::unique_ptr<Net> try_table(void* library, int wanted) {
  if (wanted != 0 && wanted != kAbi) return nullptr;
  const std::string symbol = fmt::format("ncclNetPlugin_v{}", kAbi);
  const auto* table = static_cast<const Table*>(dlsym(library, symbol.c_str()));
  if (table == nullptr) return nullptr;
  return std::make_unique<TableNet<Table, kAbi>>(*table);
}

// Completes the loader's message for a name without a slash.
std::string where_looked(const std::string& path) {
  if (path.find('/') != std::string::npos) return {};
  const bool is_here = access(path.c_str(), F_OK) == 0;
  return fmt::format("; a name without / is searched for in the library path (LD_LIBRARY_PATH){}",
                     is_here ? fmt::format("; did you mean --plugin ./{}?", path)
                             : ", --plugin PATH names a file");
}

}  // namespace

std::unique_ptr<Net> load_plugin(const std::string& path, int abi) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  // dlerror names the file and the reason.
  if (library == nullptr) fail("cannot load the plugin: {}{}", dlerror(), where_looked(path));
  std::unique_ptr<Net> net = try_table<ncclNet_v12_t, 12>(library, abi);
  if (!net) net = try_table<ncclNet_v11_t, 11>(library, abi);
  if (!net) net = try_table<ncclNet_v10_t, 10>(library, abi);
  if (!net) net = try_table<ncclNet_v9_t, 9>(library, abi);
  if (!net) net = try_table<ncclNet_v8_t, 8>(library, abi);
  if (!net) net = try_table<ncclNet_v7_t, 7>(library, abi);
  if (!net) net = try_table<ncclNet_v6_t, 6>(library, abi);
  if (net) return net;
  if (abi != 0) fail("{} has no ncclNetPlugin_v{}", path, abi);
  fail("{} is not an NCCL network plugin: it has none of ncclNetPlugin_v6 to _v12", path);
}

const char* name_of(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "ncclSuccess";
    case ncclUnhandledCudaError:
      return "ncclUnhandledCudaError";
    case ncclSystemError:
      return "ncclSystemError";
    case ncclInternalError:
      return "ncclInternalError";
    case ncclInvalidArgument:
      return "ncclInvalidArgument";
    case ncclInvalidUsage:
      return "ncclInvalidUsage";
    case ncclRemoteError:
      return "ncclRemoteError";
  }
  return "unknown ncclResult_t";
}

std::unique_ptr<Net> net_of(const ncclNet_v11_t& table) {
  return std::make_unique<TableNet<ncclNet_v11_t, 11>>(table);
}

}  // namespace ztcp::perf
