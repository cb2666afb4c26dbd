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
  // Untagged Ethernet, IPv4 without options or IPv6 without extension headers, TCP with timestamps
  // alone (RFC 7323 appendix A).
  enum class Layout : std::uint8_t { kNone, kIpv4, kIpv6 };
  // In a register, which the compiler does not do with an array.
  using Vector = std::uint64_t __attribute__((vector_size(16)));
  // The fields of such headers that are constant in a flow, in wire order and wire format: not
  // lengths, identification, numbers, window, flags, timestamps and checksums.
  struct Common {
    std::uint64_t ethernet = 0;       // Bytes 0 to 7.
    std::uint64_t ethernet_rest = 0;  // 8 to 15: with the IP header's version and traffic class.
    std::uint32_t ip = 0;             // IPv4: fragment, time to live, protocol. IPv6: the rest of
                                      // the flow label, next header, hop limit.
    std::uint32_t ports = 0;
    std::uint32_t options = 0;     // Kind and length of each.
    std::uint8_t data_offset = 0;  // With the flag AE.
    std::uint64_t addresses = 0;   // IPv4's.
    Vector source{};               // IPv6's.
    Vector destination{};
  };
  template <Layout kLayout>
  static Common common_of(const std::byte* head) noexcept;
  // True: the frame continues the run, and parsed_ describes it.
  template <Layout kLayout>
  bool goes_on(const RxFrame& frame) noexcept;
  // The two apart from next(), so that IPv4's runs do not pay for their registers.
  [[gnu::noinline]] const ParsedFrame& next_of_ipv6(const RxFrame& frame) noexcept;
  [[gnu::noinline]] const ParsedFrame& begin(const RxFrame& frame) noexcept;

  ParsedFrame parsed_;
  Common common_;
  Layout layout_ = Layout::kNone;  // Otherwise parsed_ describes a frame with common_.
};

}  // namespace ztcp::wire
