// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// --op collnet and its like: all ranks as the hosts of one CollNet group, driven as NCCL's proxy
// thread does: up to 8 pieces of a vector in flight, the oldest tested.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "tools/ztcp_perf/bootstrap.h"
#include "tools/ztcp_perf/collective_table.h"
#include "tools/ztcp_perf/options.h"
#include "tools/ztcp_perf/plan.h"

namespace ztcp::perf {

class Collective {
 public:
  // The plugin has been initialised; its table of version `abi` is in use.
  Collective(const Options& options, int abi);
  ~Collective();
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;

  // Connects all ranks and registers the memory.
  void open(int device, Bootstrap& bootstrap, std::span<std::byte> input,
            std::span<std::byte> output);

  // A vector on its way. Of an all-gather or a reduce-scatter: the blocks of all ranks.
  void begin(std::size_t size_bytes);
  bool is_done() const { return done_ == pieces_; }
  // Whether something moved.
  bool advance();

 private:
  std::size_t bytes_of(std::size_t piece) const;
  ncclResult_t post(std::size_t piece, void** request);

  std::unique_ptr<CollectiveNet> net_;
  const Op op_;
  const int rank_;
  const int ranks_;
  std::span<std::byte> input_;
  std::span<std::byte> output_;
  void* listener_ = nullptr;
  void* comm_ = nullptr;
  std::array<void*, 2> mhandles_{};
  std::size_t size_bytes_ = 0;
  std::size_t pieces_ = 0;
  std::size_t posted_ = 0;
  std::size_t done_ = 0;
  std::array<void*, kStepsInFlight> requests_{};
};

}  // namespace ztcp::perf
