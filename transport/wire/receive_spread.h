// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How a NIC chooses the queue of a received packet (receive side scaling): a Toeplitz hash over the
// packet's addresses, and over its ports where the NIC uses them, selects an entry of a table of
// queues.
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
  bool hashes_ports = true;          // Of TCP, and of the address family that the NIC has.

  // The key is long enough for the family, and every packet finds a queue.
  bool is_complete(bool is_ipv6) const {
    return key.size() >= 2 * address_bytes(is_ipv6) + kPortsBytes + 4 && !table.empty();
  }

  // For a packet from `source` to `destination`, both of one family, and a complete key.
  std::uint32_t hash(Endpoint source, Endpoint destination) const {
    std::byte input[kMostInputBytes];
    std::size_t size = put(source.address, input);
    size += put(destination.address, input + size);
    if (hashes_ports) {
      store_be16(input + size, source.port);
      store_be16(input + size + 2, destination.port);
      size += kPortsBytes;
    }
    // For each set bit of the input: the 32 bits of the key that begin at its position.
    std::uint32_t sum = 0;
    std::uint32_t window = load_be32(key.data());
    for (std::size_t i = 0; i < size; ++i) {
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
  static constexpr std::size_t kPortsBytes = 4;
  static constexpr std::size_t kMostInputBytes = 36;
  static constexpr std::size_t address_bytes(bool is_ipv6) { return is_ipv6 ? 16 : 4; }

  static std::size_t put(IpAddress address, std::byte* out) {
    if (address.is_v4()) {
      store_be32(out, address.v4().value);
    } else {
      store_be64(out, address.high);
      store_be64(out + 8, address.low);
    }
    return address_bytes(!address.is_v4());
  }
};

}  // namespace ztcp::wire
