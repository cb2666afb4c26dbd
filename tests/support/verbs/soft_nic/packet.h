// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The format between two software NICs on a stream: a header, then its payload. Both ends are of
// one build.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ztcp::soft_nic {

// Payload of one packet. A multiple of 128, so that no packet ends inside of a line.
inline constexpr std::uint32_t kMtuBytes = 256U << 10U;

enum class PacketKind : std::uint8_t {
  kWrite,
  kSend,
  kRead,
  kAcknowledge,  // Acknowledges all up to its psn.
  kRefuse,       // Carries a work completion's status.
  kReadAnswer,
};

struct Packet {
  std::uint32_t to = 0;  // Queue pair numbers.
  std::uint32_t from = 0;
  std::uint32_t psn = 0;
  PacketKind kind = PacketKind::kWrite;
  std::uint8_t status = 0;
  bool is_last = false;        // The last packet of its work request.
  bool takes_receive = false;  // On the last packet.
  std::uint32_t immediate = 0;
  std::uint32_t rkey = 0;
  std::uint64_t address = 0;
  std::uint32_t payload_bytes = 0;
  std::uint32_t message_bytes = 0;
  std::uint32_t lid = 0;  // The receiving device's.
};
static_assert(sizeof(Packet) == 48);

// A queue pair's number contains its NIC's.
inline constexpr std::uint32_t kNodeBits = 8;
inline constexpr std::uint32_t kNumberBits = 16;
constexpr std::uint32_t node_of(std::uint32_t number) { return number >> kNumberBits; }

// True if packet number a comes after b; they wrap.
constexpr bool is_after(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) > 0;
}

}  // namespace ztcp::soft_nic
