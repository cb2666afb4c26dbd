// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How a NIC chooses the queue of a received packet (receive side scaling): a Toeplitz hash over the
// packet's addresses, and over its ports where the NIC uses them, selects an entry of a table of
// queues. IPv4 only, like the stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/address.h"
#include "transport/wire/byte_order.h"

namespace ztcp::wire {

struct ReceiveSpread {
  std::vector<std::byte> key;
  std::vector<std::uint16_t> table;  // The queue, by the hash modulo the table's size.
  bool hashes_ports = true;

  // The key is long enough, and every packet finds a queue.
  bool is_complete() const { return key.size() >= kInputBytes + 4 && !table.empty(); }

  // For a packet from `source` to `destination`, both IPv4.
  std::uint32_t hash(Endpoint source, Endpoint destination) const {
    std::byte input[kInputBytes];
    store_be32(input, source.address.v4().value);
    store_be32(input + 4, destination.address.v4().value);
    store_be16(input + 8, source.port);
    store_be16(input + 10, destination.port);
    const std::size_t input_bytes = hashes_ports ? kInputBytes : kAddressBytes;
    // For each set bit of the input: the 32 bits of the key that begin at its position.
    std::uint32_t sum = 0;
    std::uint32_t window = load_be32(key.data());
    for (std::size_t i = 0; i < input_bytes; ++i) {
      const auto in = std::to_integer<unsigned>(input[i]);
      const auto next = std::to_integer<unsigned>(key[i + 4]);
      for (unsigned bit = 8; bit-- > 0;) {
        if ((in >> bit & 1U) != 0) sum ^= window;
        window = window << 1U | (next >> bit & 1U);
      }
    }
    return sum;
  }
  std::uint16_t queue_of(Endpoint source, Endpoint destination) const {
    return table[hash(source, destination) % table.size()];
  }

 private:
  static constexpr std::size_t kAddressBytes = 8;
  static constexpr std::size_t kInputBytes = 12;
};

}  // namespace ztcp::wire
