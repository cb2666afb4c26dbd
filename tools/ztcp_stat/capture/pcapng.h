// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Blocks of a pcapng file (draft-ietf-opsawg-pcapng), appended to a text: one section, one Ethernet
// interface with time stamps in nanoseconds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ztcp::capture {

inline constexpr std::uint32_t kPcapngMagic = 0x0a0d0d0a;  // The first four bytes of a file.

struct Section {
  std::string_view application;
  std::string_view comment;
};
void append_section(std::string& out, const Section& section);

struct Interface {
  std::string_view name;
  std::string_view description;
  std::string_view comment;
  std::string_view filter;  // Empty: none.
  std::array<std::uint8_t, 6> mac{};
  std::uint32_t snap_bytes = 0;  // 0: no limit.
};
void append_interface(std::string& out, const Interface& interface);

struct Packet {
  std::uint64_t time_ns = 0;  // Since 1970.
  std::uint32_t original_bytes = 0;
  bool is_sent = false;
  std::uint64_t lost_before = 0;  // Frames lost between the last packet and this one.
  std::span<const std::byte> bytes;
};
void append_packet(std::string& out, const Packet& packet);

struct Statistics {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  std::uint64_t received = 0;  // Frames that the device sent or received.
  std::uint64_t lost = 0;
  std::uint64_t written = 0;
};
void append_statistics(std::string& out, const Statistics& statistics);

}  // namespace ztcp::capture
