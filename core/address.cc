// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/address.h"

#include <arpa/inet.h>
#include <charconv>
#include <endian.h>
#include <netinet/in.h>

#include <fmt/format.h>

namespace ztcp {
namespace {

// One number without sign, blanks or leading zeros (some parsers read "010" as octal).
template <class T>
bool take_number(std::string_view& text, int base, std::size_t max_digits, T& out) {
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  if (ec != std::errc{}) return false;
  const auto digits = static_cast<std::size_t>(end - text.data());
  if (digits > max_digits || (base == 10 && digits > 1 && text.front() == '0')) return false;
  text.remove_prefix(digits);
  return true;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

// The leading `length` bits of 64; zero where `length` is negative.
constexpr std::uint64_t mask(int length) {
  if (length <= 0) return 0;
  return length >= 64 ? ~std::uint64_t{0} : ~(~std::uint64_t{0} >> length);
}

}  // namespace

bool IpPrefix::contains(IpAddress other) const {
  if (other.is_v4() != address.is_v4()) return false;
  const int bits = length + (address.is_v4() ? 96 : 0);
  return ((address.high ^ other.high) & mask(bits)) == 0 &&
         ((address.low ^ other.low) & mask(bits - 64)) == 0;
}

bool IpPrefix::may_be_host(IpAddress other) const {
  if (other.is_v4() != address.is_v4()) return false;
  if (address.is_v4()) return v4().may_be_host(other.v4());
  return other != IpAddress() && other != IpAddress(0, 1) && !other.is_multicast();
}

std::optional<MacAddress> parse_mac(std::string_view text) {
  if (text.size() != 17) return std::nullopt;
  MacAddress mac;
  for (std::size_t i = 0; i < mac.bytes.size(); ++i) {
    if (i > 0 && !take(text, ':')) return std::nullopt;
    const std::size_t before = text.size();
    if (!take_number(text, 16, 2, mac.bytes[i]) || before - text.size() != 2) return std::nullopt;
  }
  return text.empty() ? std::optional(mac) : std::nullopt;
}

std::optional<Ipv4Address> parse_ipv4(std::string_view text) {
  Ipv4Address address;
  for (int i = 0; i < 4; ++i) {
    std::uint8_t byte = 0;
    if (i > 0 && !take(text, '.')) return std::nullopt;
    if (!take_number(text, 10, 3, byte)) return std::nullopt;
    address.value = address.value << 8 | byte;
  }
  return text.empty() ? std::optional(address) : std::nullopt;
}

std::optional<Ipv4Prefix> parse_ipv4_prefix(std::string_view text) {
  const auto prefix = parse_ip_prefix(text);
  // An IPv4-mapped IPv6 text ("::ffff:10.0.0.1/24") is no IPv4 prefix.
  if (!prefix || !prefix->address.is_v4() || text.find(':') != std::string_view::npos)
    return std::nullopt;
  return prefix->v4();
}

std::optional<IpAddress> parse_ip(std::string_view text) {
  if (const auto v4 = parse_ipv4(text)) return *v4;
  // inet_pton() would stop at an embedded zero.
  if (text.find('\0') != std::string_view::npos) return std::nullopt;
  std::array<std::uint64_t, 2> words{};
  if (inet_pton(AF_INET6, std::string(text).c_str(), words.data()) != 1) return std::nullopt;
  return IpAddress(be64toh(words[0]), be64toh(words[1]));
}

std::optional<IpPrefix> parse_ip_prefix(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto address = parse_ip(text.substr(0, slash));
  text.remove_prefix(slash + 1);
  std::uint8_t length = 0;
  if (!address || !take_number(text, 10, 3, length) || !text.empty()) return std::nullopt;
  if (length > (address->is_v4() ? 32 : 128)) return std::nullopt;
  return IpPrefix(*address, length);
}

std::string to_string(const MacAddress& mac) {
  return fmt::format("{:02x}", fmt::join(mac.bytes, ":"));
}
std::string to_string(Ipv4Address a) {
  return fmt::format("{}.{}.{}.{}", a.value >> 24, a.value >> 16 & 255, a.value >> 8 & 255,
                     a.value & 255);
}
std::string to_string(IpAddress address) {
  if (address.is_v4()) return to_string(address.v4());
  const std::array<std::uint64_t, 2> words{htobe64(address.high), htobe64(address.low)};
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(AF_INET6, words.data(), text.data(), text.size());
  return text.data();
}
std::string to_string(const Ipv4Prefix& prefix) {
  return fmt::format("{}/{}", to_string(prefix.address), prefix.length);
}
std::string to_string(const IpPrefix& prefix) {
  return fmt::format("{}/{}", to_string(prefix.address), prefix.length);
}
std::string to_string(const Endpoint& endpoint) {
  const std::string address = to_string(endpoint.address);
  return endpoint.address.is_v4() ? fmt::format("{}:{}", address, endpoint.port)
                                  : fmt::format("[{}]:{}", address, endpoint.port);
}

}  // namespace ztcp
