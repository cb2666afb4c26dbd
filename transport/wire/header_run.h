// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// parse_frame() for frames that come in runs of one flow, as in bulk transfers: the constant fields
// are compared with those of the previous frame, and only the rest is parsed. The result is the
// same. Used by the engine's thread alone.
#pragma once

#include <cstdint>

#include "transport/wire/frame_parser.h"

namespace ztcp::wire {

class HeaderRun {
 public:
  // Like parse_frame(frame); valid until the next call.
  const ParsedFrame& next(const RxFrame& frame) noexcept;

 private:
  // Untagged Ethernet, IPv4 without options, TCP with timestamps alone (RFC 7323 appendix A).
  static constexpr std::size_t kBytes = 66;
  // The fields of such headers that are constant in a flow, in wire order and wire format: not
  // lengths, identification, numbers, window, flags, timestamps and checksums.
  struct Common {
    std::uint64_t ethernet = 0;       // Bytes 0 to 7.
    std::uint64_t ethernet_rest = 0;  // 8 to 15: with the IP header's version, length and traffic
                                      // class.
    std::uint32_t fragment = 0;       // 20 to 23: with time to live and protocol.
    std::uint64_t addresses = 0;      // 26 to 33.
    std::uint32_t ports = 0;          // 34 to 37.
    std::uint32_t options = 0;        // 54 to 57: kind and length of each.
    std::uint8_t data_offset = 0;     // 46: with the flag AE.
  };
  static Common common_of(const std::byte* head) noexcept;
  // True: the frame continues the run, and parsed_ describes it.
  bool goes_on(const RxFrame& frame) noexcept;

  ParsedFrame parsed_;
  Common common_;
  bool is_run_ = false;  // parsed_ describes a frame with common_.
};

}  // namespace ztcp::wire
