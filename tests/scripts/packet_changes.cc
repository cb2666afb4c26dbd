// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/scripts/packet_changes.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "tests/scripts/segment_text.h"
#include "transport/wire/checksum.h"
#include "transport/wire/icmpv6.h"
#include "transport/wire/ipv4.h"
#include "transport/wire/ipv6.h"

namespace ztcp::tcp::test {
namespace {

constexpr std::size_t kIpv6NextHeader = 6;

// A frame in its layers; `ip` is the fixed part of its header.
struct Packet {
  explicit Packet(const Bytes& frame)
      : is_ipv6(wire::load_be16(frame.data() + 12) == 0x86dd),
        ethernet(frame.begin(), frame.begin() + kIpAt) {
    const auto ip_at = frame.begin() + kIpAt;
    const auto payload_at = ip_at + (is_ipv6 ? wire::kIpv6Bytes : wire::kIpv4Bytes);
    ip.assign(ip_at, payload_at);
    payload.assign(payload_at, frame.end());
  }
  std::uint8_t protocol() const {
    return wire::load_u8(ip.data() + (is_ipv6 ? kIpv6NextHeader : 9));
  }
  IpAddress address(bool is_source) const {
    if (is_ipv6) return wire::load_ipv6_address(ip.data() + (is_source ? 8 : 24));
    return Ipv4Address{wire::load_be32(ip.data() + (is_source ? 12 : 16))};
  }
  void set_address(bool is_source, IpAddress address) {
    if (is_ipv6)
      wire::store_ipv6_address(ip.data() + (is_source ? 8 : 24), address);
    else
      wire::store_be32(ip.data() + (is_source ? 12 : 16), address.v4().value);
  }

  bool is_ipv6;
  Bytes ethernet;
  Bytes ip;
  Bytes headers;  // Between IPv6's header and the payload.
  Bytes payload;
};

void add_tcp_options(Packet& packet, const Bytes& options) {
  if (options.size() % 4 != 0) throw ScriptError("raw options have a multiple of four bytes");
  packet.payload.insert(packet.payload.begin() + wire::kTcpBytes, options.begin(), options.end());
  std::byte* offset = packet.payload.data() + wire::kTcpFlagsOffset;
  wire::store_u8(offset,
                 static_cast<std::uint8_t>(wire::load_u8(offset) + (options.size() / 4 << 4)));
}

void fill_checksum(Packet& packet, bool is_right) {
  const auto protocol = static_cast<wire::IpProtocol>(packet.protocol());
  std::byte* field =
      packet.payload.data() + (protocol == wire::IpProtocol::kTcp ? wire::kTcpChecksumOffset : 2);
  wire::store_be16(field, 0);
  wire::Checksum sum;
  if (protocol != wire::IpProtocol::kIcmp)
    sum = wire::pseudo_header_checksum(packet.address(true), packet.address(false),
                                       static_cast<std::uint32_t>(packet.payload.size()), protocol);
  sum.add(packet.payload);
  wire::store_be16(field, static_cast<std::uint16_t>(sum.finish() ^ (is_right ? 0 : 1)));
}

// "fragment:8+": its offset, and whether more follow.
std::uint16_t fragment_field(const std::string& value) {
  const bool has_more = value.ends_with('+');
  const auto offset = to_number(value.substr(0, value.size() - (has_more ? 1 : 0)));
  return static_cast<std::uint16_t>(offset | (has_more ? 1 : 0));
}

// One extension header of eight bytes; `next` is filled in later.
void add_header(Packet& packet, const std::string& text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string kind = text.substr(0, colon);
  const std::string value = colon == text.size() ? "" : text.substr(colon + 1);
  constexpr std::uint8_t kPadding = 1;
  Bytes header(8);
  std::uint8_t number = 0;
  if (kind == "hop-by-hop" || kind == "destination") {
    number = kind == "destination" ? 60 : 0;
    header[2] = value.empty() ? std::byte{kPadding} : bytes_of_hex(value).at(0);
    header[3] = std::byte{4};
  } else if (kind == "routing") {
    number = 43;
    header[3] = static_cast<std::byte>(to_number(value));
  } else if (kind == "fragment") {
    number = 44;
    wire::store_be16(header.data() + 2, fragment_field(value));
  } else {
    throw ScriptError(fmt::format("\"{}\" is no header", kind));
  }
  std::byte* before = packet.headers.empty() ? packet.ip.data() + kIpv6NextHeader
                                             : &packet.headers[packet.headers.size() - 8];
  header[0] = *before;
  *before = std::byte{number};
  packet.headers.insert(packet.headers.end(), header.begin(), header.end());
}

void add_headers(Packet& packet, const std::string& list) {
  std::istringstream in(list);
  for (std::string text; std::getline(in, text, ',');) {
    if (packet.is_ipv6) {
      add_header(packet, text);
    } else if (text.starts_with("fragment:")) {
      const std::uint16_t field = fragment_field(text.substr(9));
      wire::store_be16(packet.ip.data() + 6,
                       static_cast<std::uint16_t>(field >> 3 | (field & 1U) << 13));
    } else {
      throw ScriptError(fmt::format("\"{}\" is no header of IPv4", text));
    }
  }
}

void fill_ip(Packet& packet) {
  if (packet.is_ipv6) {
    wire::store_be16(packet.ip.data() + 4,
                     static_cast<std::uint16_t>(packet.headers.size() + packet.payload.size()));
    return;
  }
  wire::store_be16(packet.ip.data() + 2,
                   static_cast<std::uint16_t>(packet.ip.size() + packet.payload.size()));
  wire::store_be16(packet.ip.data() + 10, 0);
  wire::store_be16(packet.ip.data() + 10, wire::internet_checksum(packet.ip));
}

}  // namespace

bool is_packet_part(const std::string& name) {
  static const std::vector<std::string> kParts{"from",    "to",       "eth-from", "eth-to",
                                               "headers", "checksum", "hops"};
  return std::find(kParts.begin(), kParts.end(), name) != kParts.end();
}

Bytes bytes_of_hex(const std::string& text) {
  Bytes out;
  std::string digits;
  std::copy_if(text.begin(), text.end(), std::back_inserter(digits),
               [](char c) { return c != ' '; });
  if (digits.empty() || digits.size() % 2 != 0 ||
      digits.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw ScriptError(fmt::format("\"{}\" are no bytes in hexadecimal digits", text));
  for (std::size_t i = 0; i < digits.size(); i += 2)
    out.push_back(static_cast<std::byte>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  return out;
}

void change_packet(Frame& frame, const Parts& parts, const Names& names, const Bytes& tcp_options) {
  Packet packet(frame.bytes);
  bool is_right = true;
  if (!tcp_options.empty()) add_tcp_options(packet, tcp_options);
  packet.set_address(/*is_source=*/false, names.address("us"));
  for (const auto& [name, value] : parts) {
    if (name == "from" || name == "to") {
      packet.set_address(name == "from", names.address(value));
    } else if (name == "eth-from" || name == "eth-to") {
      const MacAddress mac = Names::mac(value);
      std::memcpy(packet.ethernet.data() + (name == "eth-from" ? 6 : 0), mac.bytes.data(), 6);
    } else if (name == "hops") {
      packet.ip[packet.is_ipv6 ? 7 : 8] = static_cast<std::byte>(to_number(value));
    } else if (name == "checksum") {
      if (value != "wrong") throw ScriptError("checksum wrong");
      is_right = false;
    }
  }
  fill_checksum(packet, is_right);
  if (const auto headers = parts.find("headers"); headers != parts.end())
    add_headers(packet, headers->second);
  fill_ip(packet);
  frame.bytes = packet.ethernet;
  for (const Bytes* layer : {&packet.ip, &packet.headers, &packet.payload})
    frame.bytes.insert(frame.bytes.end(), layer->begin(), layer->end());
  frame.view.head = frame.bytes;
}

}  // namespace ztcp::tcp::test
