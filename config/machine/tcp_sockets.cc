// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/machine/tcp_sockets.h"

#include <charconv>
#include <cstring>
#include <optional>

#include "config/machine/readings.h"
#include "config/machine/text.h"

namespace ztcp::config {
namespace {

constexpr std::array<std::uint8_t, 16> kAny{};  // "::"

template <class Number>
std::optional<Number> parse_hex(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// "0100007F:0016": 32-bit words, each in the machine's byte order.
std::optional<TcpSocket> parse_socket(std::string_view own, std::string_view state) {
  constexpr std::size_t kDigits = 8;
  const auto colon = own.find(':');
  if (colon != kDigits && colon != 4 * kDigits) return std::nullopt;
  TcpSocket socket;
  const bool is_ipv4 = colon == kDigits;
  if (is_ipv4) socket.address[10] = socket.address[11] = 0xff;
  std::uint8_t* to = socket.address.data() + (is_ipv4 ? 12 : 0);
  for (std::size_t at = 0; at < colon; at += kDigits, to += 4) {
    const auto word = parse_hex<std::uint32_t>(own.substr(at, kDigits));
    if (!word) return std::nullopt;
    std::memcpy(to, &*word, sizeof(*word));
  }
  const auto port = parse_hex<std::uint16_t>(own.substr(colon + 1));
  const auto number = parse_hex<unsigned>(state);
  if (!port || !number) return std::nullopt;
  socket.port = *port;
  socket.state = *number;
  return socket;
}

}  // namespace

bool receives_at(const TcpSocket& socket, IpAddress address) {
  std::array<std::uint8_t, 16> bytes{};
  for (std::size_t i = 0; i < 8; ++i) {
    bytes[i] = static_cast<std::uint8_t>(address.high >> (56 - 8 * i));
    bytes[8 + i] = static_cast<std::uint8_t>(address.low >> (56 - 8 * i));
  }
  constexpr std::array<std::uint8_t, 16> kAnyIpv4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return socket.address == bytes || socket.address == kAny ||
         (address.is_v4() && socket.address == kAnyIpv4);
}

bool may_be_ipv6_only(const TcpSocket& socket, IpAddress address) {
  return address.is_v4() && socket.address == kAny;
}

std::vector<TcpSocket> tcp_sockets(Machine& machine) {
  std::vector<TcpSocket> sockets;
  for (const char* file : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    const std::string text = text_of(machine, file);
    for (const std::string_view line : lines_of(text)) {
      const auto words = words_of(line);  // Slot, local, remote, state.
      if (words.size() < 4) continue;
      if (const auto socket = parse_socket(words[1], words[3])) sockets.push_back(*socket);
    }
  }
  return sockets;
}

}  // namespace ztcp::config
