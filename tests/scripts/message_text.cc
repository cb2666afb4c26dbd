// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/scripts/message_text.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "tests/scripts/segment_text.h"
#include "transport/wire/arp.h"
#include "transport/wire/icmp.h"
#include "transport/wire/icmpv6.h"
#include "transport/wire/ipv4.h"
#include "transport/wire/ndp.h"
#include "transport/wire/router_advertisement.h"

namespace ztcp::tcp::test {
namespace {

using wire::Icmpv6Type;

// Each kind with all its parts, and their values where a script names none; an empty one: absent.
// The parts of a packet (packet_changes.h) may be named besides.
const std::map<std::string, Parts>& kinds() {
  static const Parts kEcho{{"from", "peer"}, {"to", "us"}, {"len", "56"}, {"dscp", "0"}};
  static const std::map<std::string, Parts> kKinds{
      {"arp-request", {{"from", "peer"}, {"mac", "peer"}, {"target", "us"}}},
      {"arp-reply", {{"from", "peer"}, {"mac", "peer"}, {"target", "us"}}},
      {"echo-request", kEcho},
      {"echo-reply", kEcho},
      {"redirect", {{"from", "router"}, {"to", "us"}, {"target", "other"}, {"hops", "255"}}},
      {"solicitation",
       {{"from", "peer"}, {"to", "our-group"}, {"target", "us"}, {"mac", "peer"}, {"options", ""}}},
      {"advertisement",
       {{"from", "peer"},
        {"to", "us"},
        {"target", "peer"},
        {"mac", "peer"},
        {"flags", "SO"},
        {"options", ""}}},
      {"router-solicitation", {{"from", "none"}, {"to", "routers"}}},
      {"router-advertisement",
       {{"from", "router"},
        {"to", "all"},
        {"eth-from", "router"},
        {"lifetime", "1800"},
        {"preference", "medium"},
        {"prefix", ""},
        {"prefix-flags", "LA"},
        {"valid", "86400"},
        {"preferred", "14400"},
        {"options", ""}}},
      {"mld-query", {{"from", "router"}, {"to", "all"}, {"hops", "1"}, {"group", "none"}}},
      {"mld-report", {{"from", "none"}, {"to", "listeners"}, {"group", "our-group"}}},
  };
  return kKinds;
}

// Whether `flags`, which has none but `known`, has `flag`.
bool has_flag(const std::string& flags, const char* known, char flag) {
  if (flags.find_first_not_of(known) != std::string::npos)
    throw ScriptError(fmt::format("\"{}\" are no flags: {}", flags, known));
  return flags.find(flag) != std::string::npos;
}

Bytes ndp_message(const Parts& parts, const Names& names, bool is_advertisement) {
  const std::string flags = is_advertisement ? parts.at("flags") : "";
  const auto has = [&](char flag) { return has_flag(flags, "RSO", flag); };
  wire::NeighbourMessage message{.is_advertisement = is_advertisement,
                                 .target = names.address(parts.at("target")),
                                 .is_router = has('R'),
                                 .is_solicited = has('S'),
                                 .overrides = has('O')};
  if (parts.at("mac") != "none") message.mac = Names::mac(parts.at("mac"));
  Bytes bytes(wire::kEmittedNdpBytes);
  bytes.resize(wire::emit_neighbour_message(message, {}, {}, bytes.data()));
  return bytes;
}

Bytes router_advertisement(const Parts& parts) {
  static const std::map<std::string, unsigned> kPreferences{{"low", 3}, {"medium", 0}, {"high", 1}};
  const auto preference = kPreferences.find(parts.at("preference"));
  if (preference == kPreferences.end()) throw ScriptError("preference low|medium|high");
  Bytes bytes(wire::kRouterAdvertisementBytes);
  bytes[0] = std::byte{134};
  bytes[5] = static_cast<std::byte>(preference->second << 3);
  wire::store_be16(&bytes[6], static_cast<std::uint16_t>(to_number(parts.at("lifetime"))));
  if (parts.at("prefix").empty()) return bytes;
  const auto prefix = parse_ip_prefix(parts.at("prefix"));
  if (!prefix) throw ScriptError(fmt::format("\"{}\" is no prefix", parts.at("prefix")));
  const std::string& flags = parts.at("prefix-flags");
  Bytes option(wire::kPrefixOptionBytes);
  option[0] = std::byte{3};
  option[1] = std::byte{4};
  option[2] = std::byte{prefix->length};
  option[3] = static_cast<std::byte>((has_flag(flags, "LA", 'L') ? 0x80 : 0) |
                                     (has_flag(flags, "LA", 'A') ? 0x40 : 0));
  wire::store_be32(&option[4], static_cast<std::uint32_t>(to_number(parts.at("valid"))));
  wire::store_be32(&option[8], static_cast<std::uint32_t>(to_number(parts.at("preferred"))));
  wire::store_ipv6_address(&option[16], prefix->address);
  bytes.insert(bytes.end(), option.begin(), option.end());
  return bytes;
}

Bytes redirect(const Parts& parts, const Names& names, bool is_ipv6) {
  const IpAddress target = names.address(parts.at("target"));
  const IpAddress destination = names.address("peer");
  if (is_ipv6) {
    Bytes bytes(40);
    bytes[0] = std::byte{137};
    wire::store_ipv6_address(&bytes[8], target);
    wire::store_ipv6_address(&bytes[24], destination);
    return bytes;
  }
  Bytes bytes(wire::kEmittedIcmpErrorBytes);
  wire::emit_icmp_error({.source = {names.address("us"), 1}, .destination = {destination, 2}},
                        bytes.data());
  bytes[0] = std::byte{5};  // For a host.
  bytes[1] = std::byte{1};
  wire::store_be32(&bytes[4], target.v4().value);
  return bytes;
}

Bytes body_of(const MessageText& message, const Names& names, bool is_ipv6) {
  const Parts& parts = message.parts;
  if (message.kind == "solicitation") return ndp_message(parts, names, false);
  if (message.kind == "advertisement") return ndp_message(parts, names, true);
  if (message.kind == "router-advertisement") return router_advertisement(parts);
  if (message.kind == "redirect") return redirect(parts, names, is_ipv6);
  if (message.kind == "mld-query") {
    Bytes bytes(28);
    bytes[0] = std::byte{130};
    wire::store_ipv6_address(&bytes[8], names.address(parts.at("group")));
    return bytes;
  }
  if (message.kind != "echo-request")
    throw ScriptError(fmt::format("the peer sends no {}", message.kind));
  Bytes bytes = pattern(wire::kIcmpBytes + static_cast<std::size_t>(to_number(parts.at("len"))));
  bytes[0] = is_ipv6 ? std::byte{128} : std::byte{8};
  bytes[1] = std::byte{};
  return bytes;
}

Bytes arp_frame(const MessageText& message, const Names& names) {
  const bool is_request = message.kind == "arp-request";
  Bytes bytes(wire::kEthernetBytes + wire::kArpBytes);
  wire::emit_ethernet({.destination = is_request ? kBroadcastMac : kOurMac,
                       .source = Names::mac(message.parts.at("mac")),
                       .type = wire::EtherType::kArp},
                      bytes.data());
  wire::emit_arp(
      {.operation = is_request ? wire::ArpOperation::kRequest : wire::ArpOperation::kReply,
       .sender_mac = Names::mac(message.parts.at("mac")),
       .sender_ip = names.address(message.parts.at("from")).v4(),
       .target_mac = {},
       .target_ip = names.address(message.parts.at("target")).v4()},
      bytes.data() + wire::kEthernetBytes);
  return bytes;
}

// The parts that come from the IP header.
void add_ip(Parts& parts, const wire::ParsedFrame& parsed, const Names& names) {
  parts["from"] = names.text_of(parsed.ip.source);
  parts["to"] = names.text_of(parsed.ip.destination);
  parts["dscp"] = std::to_string(parsed.ip.dscp);
}

MessageText icmpv6_of(const wire::ParsedFrame& parsed, std::span<const std::byte> body,
                      const Names& names) {
  MessageText out{"icmpv6", {}};
  switch (wire::icmpv6_type(body)) {
    case Icmpv6Type::kEchoReply:
      out = {"echo-reply", {{"len", std::to_string(body.size() - wire::kIcmpBytes)}}};
      break;
    case Icmpv6Type::kRouterSolicitation:
      out.kind = "router-solicitation";
      break;
    case Icmpv6Type::kMldReport:
      out = {"mld-report", {{"group", names.text_of(wire::load_ipv6_address(&body[12]))}}};
      break;
    default:
      break;
  }
  if (const auto message = wire::parse_neighbour_message(parsed.ip, body)) {
    out.kind = message->is_advertisement ? "advertisement" : "solicitation";
    out.parts["target"] = names.text_of(message->target);
    out.parts["mac"] = message->mac ? Names::text_of(*message->mac) : "none";
    if (message->is_advertisement)
      out.parts["flags"] =
          fmt::format("{}{}{}", message->is_router ? "R" : "", message->is_solicited ? "S" : "",
                      message->overrides ? "O" : "");
  }
  return out;
}

}  // namespace

bool is_message(const std::string& kind) { return kinds().contains(kind); }

MessageText parse_message(std::span<const std::string> words) {
  MessageText out{words[0], {}};
  const Parts& known = kinds().at(out.kind);
  for (std::size_t i = 1; i < words.size(); i += 2) {
    if (i + 1 == words.size()) throw ScriptError(fmt::format("{} has no value", words[i]));
    if (!known.contains(words[i]) && !is_packet_part(words[i]))
      throw ScriptError(fmt::format("\"{}\" is no part of {}", words[i], out.kind));
    out.parts[words[i]] = words[i + 1];
  }
  return out;
}

std::string text_of(const MessageText& message) {
  std::string out = message.kind;
  for (const auto& [name, value] : message.parts) out += fmt::format(" {} {}", name, value);
  return out;
}

std::unique_ptr<Frame> frame_of(const MessageText& text, const Names& names, bool is_ipv6) {
  MessageText message = text;
  message.parts.insert(kinds().at(text.kind).begin(), kinds().at(text.kind).end());
  auto frame = std::make_unique<Frame>();
  frame->view.handle = frame.get();
  frame->view.charge_bytes = 2048;
  if (message.kind.starts_with("arp-")) {
    frame->bytes = arp_frame(message, names);
    frame->view.head = frame->bytes;
    return frame;
  }
  Bytes body = body_of(message, names, is_ipv6);
  if (const auto options = message.parts.find("options");
      options != message.parts.end() && !options->second.empty()) {
    const Bytes bytes = bytes_of_hex(options->second);
    body.insert(body.end(), bytes.begin(), bytes.end());
  }
  const auto dscp = static_cast<std::uint8_t>(
      message.parts.contains("dscp") ? to_number(message.parts.at("dscp")) : 0);
  const IpAddress to = names.address(message.parts.at("to"));
  Bytes& bytes = frame->bytes;
  bytes.resize(kIpAt + (is_ipv6 ? wire::kIpv6Bytes : wire::kIpv4Bytes));
  wire::emit_ethernet({.destination = is_ipv6 && to.is_multicast() ? wire::group_mac(to) : kOurMac,
                       .source = kPeerMac,
                       .type = is_ipv6 ? wire::EtherType::kIpv6 : wire::EtherType::kIpv4},
                      bytes.data());
  if (is_ipv6)
    wire::emit_ipv6({.source = {},
                     .destination = {},
                     .protocol = wire::IpProtocol::kIcmpv6,
                     .dscp = dscp,
                     .hop_limit = wire::kNdpHopLimit},
                    bytes.data() + kIpAt);
  else
    wire::emit_ipv4(
        {.source = {}, .destination = {}, .protocol = wire::IpProtocol::kIcmp, .dscp = dscp},
        bytes.data() + kIpAt);
  bytes.insert(bytes.end(), body.begin(), body.end());
  change_packet(*frame, message.parts, names);
  return frame;
}

MessageText message_of(const Bytes& frame, const Names& names) {
  RxFrame rx;
  rx.head = frame;
  const wire::ParsedFrame parsed = wire::parse_frame(rx);
  const auto body =
      std::span(frame).subspan(parsed.payload_offset, frame.size() - parsed.payload_offset);
  MessageText out{"unknown", {}};
  if (parsed.kind == wire::FrameKind::kArp) {
    if (const auto arp = wire::parse_arp(body))
      out = {arp->operation == wire::ArpOperation::kRequest ? "arp-request" : "arp-reply",
             {{"from", names.text_of(arp->sender_ip)},
              {"mac", Names::text_of(arp->sender_mac)},
              {"target", names.text_of(arp->target_ip)}}};
  } else if (parsed.kind == wire::FrameKind::kIcmpv6) {
    out = icmpv6_of(parsed, body, names);
    add_ip(out.parts, parsed, names);
  } else if (const auto echo = wire::parse_icmp_echo(body);
             parsed.kind == wire::FrameKind::kIcmp && echo && !echo->is_request) {
    out = {"echo-reply", {{"len", std::to_string(body.size() - wire::kIcmpBytes)}}};
    add_ip(out.parts, parsed, names);
  }
  out.parts["eth-to"] = Names::text_of(parsed.ethernet.destination);
  return out;
}

bool matches(const MessageText& message, const MessageText& wanted) {
  return message.kind == wanted.kind &&
         std::all_of(wanted.parts.begin(), wanted.parts.end(), [&](const auto& part) {
           const auto real = message.parts.find(part.first);
           return real != message.parts.end() && real->second == part.second;
         });
}

}  // namespace ztcp::tcp::test
