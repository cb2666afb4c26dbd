// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The source ports of a stack's connections (RFC 6056 section 3.3.3: a hashed start, then the first
// free one). Stacks that share a NIC divide the ports by number, so that each can tell which stack
// owns a segment that the NIC delivered to the wrong queue.
//
// Owned by a Stack.
#pragma once

#include <cstdint>
#include <optional>

#include "core/address.h"
#include "transport/tcp/settings.h"

namespace ztcp::tcp {

class SourcePorts {
 public:
  // Ports that are tried, at a round trip each, until the peer's answers come to our queue. With
  // eight queues that fails for one in 5000 connections.
  static constexpr int kMostTries = 64;
  // After that failed, the NIC seems to ignore ports, and further connections try fewer.
  static constexpr int kFewTries = 4;
  // After this many mispredicted ports, the NIC's description is not used any more.
  static constexpr int kTriesBelieved = 4;

  explicit SourcePorts(const StackConfig& config)
      : shard_(config.shard),
        own_(config.address.address),
        first_(config.ephemeral_port_first),
        last_(config.ephemeral_port_last) {}

  void set_address(IpAddress own) { own_ = own; }
  bool is_shared() const { return shard_.count > 1; }

  // The stack whose connections use this port; nothing: an incoming connection may have it.
  std::optional<std::uint8_t> owner(std::uint16_t port) const {
    if (port < first_ || port > last_) return std::nullopt;
    return static_cast<std::uint8_t>((port - first_) % shard_.count);
  }

  // The first of our ports, from number `start` on, that is free for a connection to `remote`.
  // `tried`: ports tried already.
  template <class IsFree>
  std::optional<std::uint16_t> choose(std::uint32_t start, Endpoint remote, int tried,
                                      IsFree&& is_free) const {
    const std::uint32_t span = std::uint32_t{last_} - first_ + 1;
    if (shard_.index >= span) return std::nullopt;
    const std::uint32_t count = (span - 1 - shard_.index) / shard_.count + 1;
    const auto find = [&](auto&& fits) -> std::optional<std::uint16_t> {
      for (std::uint32_t i = 0; i < count; ++i) {
        const auto port =
            static_cast<std::uint16_t>(first_ + (start + i) % count * shard_.count + shard_.index);
        if (fits(port) && is_free(port)) return port;
      }
      return std::nullopt;
    };
    if (is_predicted(remote, tried)) {
      const auto found = find([&](std::uint16_t port) {
        return shard_.spread->queue_of(remote, {own_, port}) == shard_.index;
      });
      if (found) return found;
    }
    return find([](std::uint16_t) { return true; });
  }

  // After `tried` ports whose answers all came to another queue. If the NIC does not look at ports,
  // the next one's answer would go there, too.
  bool may_try_another(int tried) const {
    if (shard_.spread != nullptr && !shard_.spread->hashes_ports) return false;
    return tried < (is_in_vain_ ? kFewTries : kMostTries);
  }
  // Result of a search: whether the answers came to our queue.
  void note_luck(bool found) { is_in_vain_ = !found; }

 private:
  // Frames to our own address never pass the NIC.
  bool is_predicted(Endpoint remote, int tried) const {
    return is_shared() && shard_.spread != nullptr && shard_.spread->hashes_ports &&
           tried < kTriesBelieved && remote.address != own_;
  }

  const Shard shard_;
  IpAddress own_;
  const std::uint16_t first_;
  const std::uint16_t last_;
  bool is_in_vain_ = false;
};

}  // namespace ztcp::tcp
