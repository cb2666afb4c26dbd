// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Chooses over how many channels, and by which protocol, NCCL runs a collective. NCCL's model only
// knows network cards, and opens more channels the more devices are exposed to it
// (DeviceProperties::nccl_devices).
//
// Over the kernel's sockets each channel of each step is a message with its own system calls and
// wake-up, so a step must bring each channel enough bytes to pay for them. Over the userspace TCP a
// message costs little, but more than four channels per rank gain nothing.
//
// Every rank of a communicator must come to the same answer, or all wait for ever: the answer
// depends on nothing of this host but the rows of plugin/collnet_sizes.h that hold for it, and
// ranks with different rules refuse each other (plugin/agreement.h). A change of any answer needs a
// new ChannelTuner::kRule (tests/data/tuner/README.md).
//
// Where CollNet is on, NCCL takes it for the all-reduces of plugin/collnet_sizes.h alone. It takes
// CollNet for no all-gather and reduce-scatter, also where the channels are NCCL's own choice: its
// model knows CollNet by switches that reduce. The answers of kRule are those without CollNet.
//
// The ranks of one host are separate processes, each with its own NCCL proxy thread, so their
// channels add up. This is reasoned; measurements cover one rank per host only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "plugin/abi/nccl_tuner.h"
#include "plugin/collnet_sizes.h"
#include "transport/transport.h"

namespace ztcp::plugin {

// NCCL's estimated time of each algorithm with each protocol. Negative: NCCL will not use it.
class CostTable {
 public:
  CostTable(std::span<float> costs, std::size_t protocols) : costs_(costs), protocols_(protocols) {}

  bool has(int algorithm, int protocol) const {
    return is_inside(algorithm, protocol) && costs_[index(algorithm, protocol)] >= 0;
  }
  void bar(int algorithm, int protocol) {
    if (is_inside(algorithm, protocol)) costs_[index(algorithm, protocol)] = -1;
  }
  // NCCL will choose it, if it can.
  void prefer(int algorithm, int protocol) {
    if (has(algorithm, protocol)) costs_[index(algorithm, protocol)] = 0;
  }
  // With any protocol; with all of them.
  bool has(int algorithm) const;
  void bar(int algorithm);
  int algorithms() const { return static_cast<int>(costs_.size() / protocols_); }
  // The algorithm that NCCL will choose; -1: none.
  int cheapest_algorithm() const;

 private:
  bool is_inside(int algorithm, int protocol) const {
    return static_cast<std::size_t>(protocol) < protocols_ &&
           index(algorithm, protocol) < costs_.size();
  }
  std::size_t index(int algorithm, int protocol) const {
    return static_cast<std::size_t>(algorithm) * protocols_ + static_cast<std::size_t>(protocol);
  }

  std::span<float> costs_;
  std::size_t protocols_;
};

// One per communicator. Immutable: NCCL calls it from several threads.
class ChannelTuner {
 public:
  // The number of tune()'s rule. Two builds with the same number give the same answers.
  static constexpr std::uint8_t kRule = 3;

  // `network` carries all NICs of all hosts: sockets or the userspace TCP. Empty: the channels are
  // NCCL's own choice. `collnet`: the sizes for which CollNet is offered; empty where CollNet is
  // off.
  ChannelTuner(std::optional<TransportKind> network, std::size_t ranks, std::size_t hosts,
               std::optional<CollnetRows> collnet = std::nullopt)
      : network_(network),
        ranks_(ranks),
        hosts_(hosts),
        ranks_of_host_(hosts == 0 ? ranks : ranks / hosts),
        collnet_(collnet) {}

  // Number of channels for a collective of `bytes` (summed over all ranks where each has a part);
  // 0: NCCL's own choice. Bars protocols that do not pay in `costs`.
  int tune(ncclFunc_t collective, std::size_t bytes, CostTable& costs) const;

 private:
  // Bytes that cross the network in one step.
  std::size_t step_bytes(int algorithm, std::size_t bytes) const;
  bool is_faster_by_collnet(ncclFunc_t collective, std::size_t bytes) const;
  void choose_collnet(ncclFunc_t collective, std::size_t bytes, CostTable& costs) const;

  std::optional<TransportKind> network_;
  std::size_t ranks_;
  std::size_t hosts_;
  std::size_t ranks_of_host_;
  std::optional<CollnetRows> collnet_;
};

}  // namespace ztcp::plugin
