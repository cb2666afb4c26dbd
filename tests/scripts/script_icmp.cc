// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// ICMP and ICMPv6 errors of a router.
#include <map>

#include <fmt/format.h>

#include "tests/scripts/script_runner.h"
#include "tests/support/icmpv6_error.h"
#include "transport/wire/icmp.h"
#include "transport/wire/ipv4.h"

namespace ztcp::tcp::test {
namespace {

// The types of an error in both families; 0: the family has none.
struct Types {
  std::uint8_t icmp = 0;
  std::uint8_t icmpv6 = 0;
};
const std::map<std::string, Types> kTypes{
    {"needs-fragmentation", {3, 0}}, {"packet-too-big", {0, 2}}, {"unreachable", {3, 1}},
    {"source-quench", {4, 0}},       {"time-exceeded", {11, 3}}, {"parameter-problem", {12, 4}},
};

std::unique_ptr<Frame> icmp_frame(const wire::IcmpError& error) {
  auto frame = std::make_unique<Frame>();
  Bytes& bytes = frame->bytes;
  bytes.resize(kIpAt + wire::kIpv4Bytes + wire::kEmittedIcmpErrorBytes);
  wire::emit_ethernet({.destination = kOurMac, .source = kPeerMac}, bytes.data());
  wire::emit_ipv4({.source = {}, .destination = {}, .protocol = wire::IpProtocol::kIcmp},
                  bytes.data() + kIpAt);
  wire::emit_icmp_error(error, bytes.data() + kIpAt + wire::kIpv4Bytes);
  frame->view.handle = frame.get();
  frame->view.charge_bytes = 2048;
  return frame;
}

}  // namespace

// About a segment of ours.
void ScriptRunner::icmp(Words words) {
  if (words.size() < 4 || words.size() % 2 != 0 || words[2] != "seq")
    throw ScriptError("icmp KIND NUMBER seq N [PACKET]");
  Parts parts{{"from", "router"}};
  for (std::size_t i = 4; i < words.size(); i += 2) {
    if (!is_packet_part(words[i])) throw ScriptError(fmt::format("\"{}\" is no part", words[i]));
    parts[words[i]] = words[i + 1];
  }
  const auto found = kTypes.find(words[0]);
  const Types types = found == kTypes.end() ? Types{} : found->second;
  const std::uint8_t type = config_.is_ipv6() ? types.icmpv6 : types.icmp;
  if (type == 0) throw ScriptError(fmt::format("\"{}\" is no error of the family", words[0]));
  const auto value = static_cast<std::uint16_t>(to_number(words[1]));
  const bool has_mtu = words[0] == "needs-fragmentation" || words[0] == "packet-too-big";
  const auto code = static_cast<std::uint8_t>(has_mtu ? 0 : value);
  const Endpoint source{peer().stack.address(), peer().our_port};
  const Endpoint destination{peer_ip(config_.is_ipv6()), kPeerPort};
  const std::uint32_t sequence = origins_.ours + static_cast<std::uint32_t>(to_number(words[3]));
  std::unique_ptr<Frame> frame;
  if (config_.is_ipv6()) {
    const IpAddress router = names().address("router");
    frame =
        icmpv6_from_peer(wire::icmpv6_error_message({.type = static_cast<wire::Icmpv6Type>(type),
                                                     .code = code,
                                                     .mtu_bytes = has_mtu ? value : 0U,
                                                     .source = source,
                                                     .destination = destination,
                                                     .sequence = sequence},
                                                    router),
                         router, source.address, 64);
  } else {
    frame = icmp_frame({.type = static_cast<wire::IcmpError::Type>(type),
                        .code = has_mtu ? wire::IcmpError::kFragmentationNeeded : code,
                        .next_hop_mtu_bytes = static_cast<std::uint16_t>(has_mtu ? value : 0),
                        .source = source,
                        .destination = destination,
                        .sequence = sequence});
  }
  change_packet(*frame, parts, names());
  arrive(std::move(frame));
}

}  // namespace ztcp::tcp::test
