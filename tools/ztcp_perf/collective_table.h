// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One interface to all CollNet tables from v6 on of a libnccl-net.so, as plugin_table.h is one to
// its network tables.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "plugin/abi/nccl_collnet.h"

namespace ztcp::perf {

class CollectiveNet {
 public:
  virtual ~CollectiveNet() = default;

  // After the network's init.
  virtual ncclResult_t init(ncclDebugLogger_t logger) = 0;
  virtual ncclResult_t devices(int* count) = 0;
  virtual ncclResult_t listen(int device, void* handle, void** comm) = 0;
  // Blocks until all ranks are connected.
  virtual ncclResult_t connect(std::span<void*> handles, int rank, void* listen_comm,
                               void** comm) = 0;
  virtual ncclResult_t reg_mr(void* comm, void* data, std::size_t size, void** mhandle) = 0;
  virtual ncclResult_t dereg_mr(void* comm, void* mhandle) = 0;
  // The sum of floats. Success with *request == nullptr: call again.
  virtual ncclResult_t iallreduce(void* comm, void* from, void* to, std::size_t count,
                                  void* from_mhandle, void* to_mhandle, void** request) = 0;
  // A window of the parts of all ranks (plugin/collnet_windows.h), of floats in a sum. Fail before
  // v8.
  struct Window {
    void* all = nullptr;  // Its memory, and that of this rank's part of it.
    void* all_mhandle = nullptr;
    void* own = nullptr;
    void* own_mhandle = nullptr;
    std::size_t part_bytes = 0;
    std::size_t offset = 0;
    std::size_t bytes = 0;
  };
  virtual ncclResult_t iallgather(void* comm, const Window& window, void** request) = 0;
  virtual ncclResult_t ireducescatter(void* comm, const Window& window, void** request) = 0;
  virtual ncclResult_t test(void* request, int* done, int* size) = 0;
  virtual ncclResult_t close(void* comm) = 0;
  virtual ncclResult_t close_listen(void* comm) = 0;
  // Does nothing before v11.
  virtual ncclResult_t finalize() = 0;
};

// From the plugin that load_plugin() loaded. Throws Failure with the reason.
std::unique_ptr<CollectiveNet> load_collective(const std::string& path, int abi);

}  // namespace ztcp::perf
