// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One interface to all tables from v6 on of a libnccl-net.so. Loaded as NCCL does it: RTLD_NOW |
// RTLD_LOCAL, the newest table first.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "plugin/abi/nccl_abi.h"

namespace ztcp::perf {

struct DeviceProperties {
  std::string name;
  std::string pci_path;  // Empty: not given by the plugin.
  int speed_mbps = 0;
  int pointer_support = 0;
  int max_receives = 1;
};

// NCCL's maximum number of buffers of one receive.
inline constexpr std::size_t kMaxParts = 8;

// One buffer of a receive, for the message with this tag.
struct ReceivePart {
  void* data = nullptr;
  std::size_t size_bytes = 0;
  int tag = 0;
  void* mhandle = nullptr;
};

using Handle = std::array<std::byte, NCCL_NET_HANDLE_MAXSIZE>;

class Net {
 public:
  virtual ~Net() = default;

  virtual int abi() const = 0;
  virtual const char* name() const = 0;

  virtual ncclResult_t init(ncclDebugLogger_t logger) = 0;
  virtual ncclResult_t devices(int* count) = 0;
  virtual ncclResult_t properties(int device, DeviceProperties* properties) = 0;
  virtual ncclResult_t listen(int device, void* handle, void** comm) = 0;
  // Success with *comm == nullptr: call again.
  virtual ncclResult_t connect(int device, void* handle, void** comm) = 0;
  virtual ncclResult_t accept(void* listen_comm, void** comm) = 0;
  virtual ncclResult_t reg_mr(void* comm, void* data, std::size_t size, void** mhandle) = 0;
  virtual ncclResult_t dereg_mr(void* comm, void* mhandle) = 0;
  // Success with *request == nullptr: call again.
  virtual ncclResult_t isend(void* comm, void* data, std::size_t size, int tag, void* mhandle,
                             void** request) = 0;
  virtual ncclResult_t irecv(void* comm, std::span<const ReceivePart> parts, void** request) = 0;
  // `sizes` has room for each part of a receive.
  virtual ncclResult_t test(void* request, int* done, int* sizes) = 0;
  virtual ncclResult_t close_send(void* comm) = 0;
  virtual ncclResult_t close_recv(void* comm) = 0;
  virtual ncclResult_t close_listen(void* comm) = 0;
  // Does nothing before v11.
  virtual ncclResult_t finalize() = 0;
};

// `abi` 0 takes the newest table. Throws Failure with the reason.
std::unique_ptr<Net> load_plugin(const std::string& path, int abi);

// A network of this program. `table` must outlive it.
std::unique_ptr<Net> net_of(const ncclNet_v11_t& table);

const char* name_of(ncclResult_t result);

}  // namespace ztcp::perf
