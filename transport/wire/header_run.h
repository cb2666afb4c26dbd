// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// parse_frame() for frames that come in runs of one flow, as bulk does: what its headers have in
// common is compared with the frame before, and only the rest is read. The outcome is the same.
// The engine's thread alone.
#pragma once

#include <cstdint>

#include "transport/wire/frame_parser.h"

namespace ztcp::wire {

class HeaderRun {
 public:
  // As parse_frame(frame); valid until the next call.
  const ParsedFrame& next(const RxFrame& frame) noexcept;

 private:
  // Untagged Ethernet, IPv4 without options, TCP with timestamps alone (RFC 7323 appendix A).
  static constexpr std::size_t kBytes = 66;
  // Of such headers, in the order and with the bytes of the wire, what a flow keeps: not lengths,
  // identification, numbers, window, flags, timestamps and checksums.
  struct Common {
    std::uint64_t ethernet = 0;       // Bytes 0 to 7.
    std::uint64_t ethernet_rest = 0;  // To 15: the IP header's version, length and traffic class.
    std::uint32_t fragment = 0;       // 20 to 23: with time to live and protocol.
    std::uint64_t addresses = 0;      // 26 to 33.
    std::uint32_t ports = 0;          // 34 to 37.
    std::uint32_t options = 0;        // 54 to 57: kind and length of each.
    std::uint8_t data_offset = 0;     // 46.
  };
  static Common common_of(const std::byte* head) noexcept;
  // True: the frame goes on with the run, and parsed_ is of it.
  bool goes_on(const RxFrame& frame) noexcept;

  ParsedFrame parsed_;
  Common common_;
  bool is_run_ = false;  // parsed_ is of a frame of common_.
};

}  // namespace ztcp::wire
