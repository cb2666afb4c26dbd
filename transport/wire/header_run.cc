// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/wire/header_run.h"

#include <cstring>

#include "transport/wire/byte_order.h"

namespace ztcp::wire {
namespace {

constexpr std::size_t kIpAt = kEthernetBytes;
constexpr std::size_t kTcpAt = kIpAt + kIpv4Bytes;
constexpr std::size_t kOptionsAt = kTcpAt + kTcpBytes;

template <class T>
T load(const std::byte* p) noexcept {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

}  // namespace

HeaderRun::Common HeaderRun::common_of(const std::byte* head) noexcept {
  return {.ethernet = load<std::uint64_t>(head),
          .ethernet_rest = load<std::uint64_t>(head + 8),
          .fragment = load<std::uint32_t>(head + kIpAt + 6),
          .addresses = load<std::uint64_t>(head + kIpAt + 12),
          .ports = load<std::uint32_t>(head + kTcpAt),
          .options = load<std::uint32_t>(head + kOptionsAt),
          .data_offset = load_u8(head + kTcpAt + 12)};
}

bool HeaderRun::goes_on(const RxFrame& frame) noexcept {
  if (!is_run_ || frame.head.size() < kBytes) return false;
  const std::byte* head = frame.head.data();
  const Common other = common_of(head);
  // One branch for all of them: they nearly always agree.
  const std::uint64_t differs =
      (other.ethernet ^ common_.ethernet) | (other.ethernet_rest ^ common_.ethernet_rest) |
      (other.addresses ^ common_.addresses) | (other.fragment ^ common_.fragment) |
      (other.ports ^ common_.ports) | (other.options ^ common_.options) |
      static_cast<std::uint64_t>(other.data_offset ^ common_.data_offset);
  if (differs != 0) return false;

  std::size_t frame_bytes = frame.head.size();
  for (const auto piece : frame.more) frame_bytes += piece.size();
  const std::uint16_t total_bytes = load_be16(head + kIpAt + 2);
  constexpr std::size_t kPacketHeaderBytes = kBytes - kEthernetBytes;
  if (total_bytes < kPacketHeaderBytes || total_bytes > frame_bytes - kEthernetBytes) return false;

  parsed_.ip.total_bytes = total_bytes;
  parsed_.ip.identification = load_be16(head + kIpAt + 4);
  TcpHeader& tcp = parsed_.tcp;
  tcp.sequence = load_be32(head + kTcpAt + 4);
  tcp.acknowledgment = load_be32(head + kTcpAt + 8);
  tcp.flags = TcpFlags(load_be16(head + kTcpAt + kTcpFlagsOffset) & TcpFlags::kMask);
  tcp.window = load_be16(head + kTcpAt + 14);
  tcp.options.timestamps =
      Timestamps{load_be32(head + kOptionsAt + 4), load_be32(head + kOptionsAt + 8)};
  parsed_.payload_bytes = static_cast<std::uint32_t>(total_bytes - kPacketHeaderBytes);
  return true;
}

const ParsedFrame& HeaderRun::next(const RxFrame& frame) noexcept {
  if (goes_on(frame)) [[likely]]
    return parsed_;
  parse_frame(frame, parsed_);
  is_run_ = parsed_.kind == FrameKind::kTcp && parsed_.ethernet.header_bytes == kEthernetBytes &&
            parsed_.ip.header_bytes == kIpv4Bytes && parsed_.payload_offset == kBytes &&
            load_be32(frame.head.data() + kOptionsAt) == kNopNopTimestamps;
  if (is_run_) common_ = common_of(frame.head.data());
  return parsed_;
}

}  // namespace ztcp::wire
