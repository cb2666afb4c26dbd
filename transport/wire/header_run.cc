// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/wire/header_run.h"

#include <cstring>

#include "transport/wire/byte_order.h"
#include "transport/wire/ipv4.h"
#include "transport/wire/ipv6.h"

namespace ztcp::wire {
namespace {

constexpr std::size_t kIpAt = kEthernetBytes;

template <class T>
T load(const std::byte* p) noexcept {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

template <bool kIsIpv6>
struct Places {
  static constexpr std::size_t kTcpAt = kIpAt + (kIsIpv6 ? kIpv6Bytes : kIpv4Bytes);
  static constexpr std::size_t kOptionsAt = kTcpAt + kTcpBytes;
  static constexpr std::size_t kEnd = kOptionsAt + kTimestampOptionBytes;
};

}  // namespace

template <HeaderRun::Layout kLayout>
HeaderRun::Common HeaderRun::common_of(const std::byte* head) noexcept {
  using At = Places<kLayout == Layout::kIpv6>;
  Common common{.ethernet = load<std::uint64_t>(head),
                .ethernet_rest = load<std::uint64_t>(head + 8),
                .ip = 0,
                .ports = load<std::uint32_t>(head + At::kTcpAt),
                .options = load<std::uint32_t>(head + At::kOptionsAt),
                .data_offset = load_u8(head + At::kTcpAt + 12),
                .addresses = 0,
                .source = {},
                .destination = {}};
  if constexpr (kLayout == Layout::kIpv4) {
    common.ip = load<std::uint32_t>(head + kIpAt + 6);
    common.addresses = load<std::uint64_t>(head + kIpAt + 12);
  } else {
    common.ip = std::uint32_t{load<std::uint16_t>(head + kIpAt + 2)} << 16 |
                load<std::uint16_t>(head + kIpAt + 6);
    common.source = load<Vector>(head + kIpAt + 8);
    common.destination = load<Vector>(head + kIpAt + 24);
  }
  return common;
}

template <HeaderRun::Layout kLayout>
bool HeaderRun::goes_on(const RxFrame& frame) noexcept {
  using At = Places<kLayout == Layout::kIpv6>;
  if (frame.head.size() < At::kEnd) return false;
  const std::byte* head = frame.head.data();
  const Common other = common_of<kLayout>(head);
  // One branch for all of them: they nearly always agree.
  std::uint64_t differs = (other.ethernet ^ common_.ethernet) |
                          (other.ethernet_rest ^ common_.ethernet_rest) |
                          (other.addresses ^ common_.addresses) | (other.ip ^ common_.ip) |
                          (other.ports ^ common_.ports) | (other.options ^ common_.options) |
                          static_cast<std::uint64_t>(other.data_offset ^ common_.data_offset);
  if constexpr (kLayout == Layout::kIpv6) {
    const Vector differ =
        (other.source ^ common_.source) | (other.destination ^ common_.destination);
    differs |= differ[0] | differ[1];
  }
  if (differs != 0) return false;

  std::size_t frame_bytes = frame.head.size();
  for (const auto piece : frame.more) frame_bytes += piece.size();
  std::uint32_t total_bytes = 0;
  if constexpr (kLayout == Layout::kIpv4)
    total_bytes = load_be16(head + kIpAt + 2);
  else
    total_bytes = static_cast<std::uint32_t>(kIpv6Bytes + load_be16(head + kIpAt + 4));
  constexpr std::size_t kPacketHeaderBytes = At::kEnd - kEthernetBytes;
  if (total_bytes < kPacketHeaderBytes || total_bytes > frame_bytes - kEthernetBytes) return false;

  parsed_.ip.total_bytes = total_bytes;
  TcpHeader& tcp = parsed_.tcp;
  tcp.sequence = load_be32(head + At::kTcpAt + 4);
  tcp.acknowledgment = load_be32(head + At::kTcpAt + 8);
  tcp.flags = TcpFlags(load_be16(head + At::kTcpAt + kTcpFlagsOffset) & TcpFlags::kMask);
  tcp.window = load_be16(head + At::kTcpAt + 14);
  tcp.options.timestamps =
      Timestamps{load_be32(head + At::kOptionsAt + 4), load_be32(head + At::kOptionsAt + 8)};
  parsed_.payload_bytes = static_cast<std::uint32_t>(total_bytes - kPacketHeaderBytes);
  return true;
}

const ParsedFrame& HeaderRun::begin(const RxFrame& frame) noexcept {
  parse_frame(frame, parsed_);
  layout_ = Layout::kNone;
  if (parsed_.kind != FrameKind::kTcp || parsed_.ethernet.header_bytes != kEthernetBytes)
    return parsed_;
  const std::byte* head = frame.head.data();
  const auto is_laid_out = [&]<bool kIsIpv6>(Places<kIsIpv6>) {
    using At = Places<kIsIpv6>;
    return parsed_.is_ipv6() == kIsIpv6 && parsed_.payload_offset == At::kEnd &&
           parsed_.ip.header_bytes == At::kTcpAt - kIpAt &&
           load_be32(head + At::kOptionsAt) == kNopNopTimestamps;
  };
  if (is_laid_out(Places<false>{})) {
    layout_ = Layout::kIpv4;
    common_ = common_of<Layout::kIpv4>(head);
  } else if (is_laid_out(Places<true>{})) {
    layout_ = Layout::kIpv6;
    common_ = common_of<Layout::kIpv6>(head);
  }
  return parsed_;
}

const ParsedFrame& HeaderRun::next_of_ipv6(const RxFrame& frame) noexcept {
  if (goes_on<Layout::kIpv6>(frame)) [[likely]]
    return parsed_;
  return begin(frame);
}

const ParsedFrame& HeaderRun::next(const RxFrame& frame) noexcept {
  if (layout_ == Layout::kIpv6) return next_of_ipv6(frame);
  if (layout_ == Layout::kIpv4 && goes_on<Layout::kIpv4>(frame)) [[likely]]
    return parsed_;
  return begin(frame);
}

}  // namespace ztcp::wire
