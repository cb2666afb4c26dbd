// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Over how many channels NCCL spreads a collective, and by which protocol. NCCL's model knows
// cards, and opens more channels the more devices it is shown (DeviceProperties::views).
//
// Over the kernel's sockets each channel of each step is a message with system calls and a wake-up
// of its own, so a step shall bring each channel enough to be worth them. Over the userspace TCP a
// message costs little, and four channels of a rank are as good as more.
//
// Every rank of a communicator must come to the same answer, or all wait for ever: nothing of this
// host goes into it, and ranks whose rules differ refuse each other (plugin/agreement.h). A change
// of any answer needs a new ChannelTuner::kRule (tests/data/tuner/README.md).
//
// Channels of several ranks of a host leave it by several processes, each with a thread of NCCL's,
// so there are as many more. That is reasoned; measured is one rank to a host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plugin/abi/nccl_tuner.h"
#include "transport/transport.h"

namespace ztcp::plugin {

// What NCCL thinks each algorithm takes by each protocol. Costs below 0 are of what it won't take.
class CostTable {
 public:
  CostTable(std::span<float> costs, std::size_t protocols) : costs_(costs), protocols_(protocols) {}

  bool has(int algorithm, int protocol) const {
    return is_inside(algorithm, protocol) && costs_[index(algorithm, protocol)] >= 0;
  }
  void bar(int algorithm, int protocol) {
    if (is_inside(algorithm, protocol)) costs_[index(algorithm, protocol)] = -1;
  }
  // That which NCCL will take; -1: none.
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

// Of one communicator. Immutable: NCCL asks from several threads.
class ChannelTuner {
 public:
  // The number of the rule by which tune() answers. Two builds with the same number answer alike.
  static constexpr std::uint8_t kRule = 3;

  // `network`: sockets or the userspace TCP, of all NICs of all hosts.
  ChannelTuner(TransportKind network, std::size_t ranks, std::size_t hosts)
      : network_(network), ranks_(ranks), ranks_of_host_(hosts == 0 ? ranks : ranks / hosts) {}

  // Channels for a collective of so many bytes (of all ranks together where each has a part); 0:
  // as NCCL likes. Protocols that do not pay are barred in `costs`.
  int tune(ncclFunc_t collective, std::size_t bytes, CostTable& costs) const;

 private:
  // What goes over the network at once.
  std::size_t step_bytes(int algorithm, std::size_t bytes) const;

  TransportKind network_;
  std::size_t ranks_;
  std::size_t ranks_of_host_;
};

}  // namespace ztcp::plugin
