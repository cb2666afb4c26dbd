// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/handle.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cassert>
#include <cstring>
#include <sys/socket.h>

namespace ztcp::plugin {
namespace {

constexpr std::array<std::byte, 3> kMagic = {std::byte{'z'}, std::byte{'T'}, std::byte{0xc9}};
constexpr std::size_t kMagicAt = 2;
constexpr std::size_t kVersionKindAt = 5;
constexpr std::size_t kPayloadAt = 6;
constexpr std::size_t kZeroFrom = kPayloadAt + PeerHandle::kCapacity;
constexpr std::size_t kConnectStateAt = 72;
static_assert(kZeroFrom == 40, "bytes 40-71 belong to nobody");

// Beside TransportKind's.
constexpr std::uint8_t kPoisoned = 2;
// Beside the kind.
constexpr std::uint8_t kTuned = 8;

constexpr bool is_transport(std::uint8_t kind) {
  switch (static_cast<TransportKind>(kind)) {
    case TransportKind::kUstack:
    case TransportKind::kSockets:
    case TransportKind::kVerbs:
      return true;
  }
  return false;
}
static_assert(!is_transport(kPoisoned));

void begin(std::uint8_t kind, HandleBytes out) {
  assert(out.size() >= kShortHandleBytes);
  std::ranges::fill(out, std::byte{0});
  std::ranges::copy(kMagic, out.begin() + kMagicAt);
  out[kVersionKindAt] = static_cast<std::byte>(kHandleVersion << 4U | kind);
}

// NCCL's Socket and IB handles both begin with the listener's sockaddr.
ForeignHandle describe_foreign(ConstHandleBytes handle) {
  std::uint16_t family = 0;
  std::memcpy(&family, handle.data(), sizeof family);
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (family == AF_INET)
    inet_ntop(AF_INET, handle.data() + offsetof(sockaddr_in, sin_addr), text.data(), text.size());
  else if (family == AF_INET6)
    inet_ntop(AF_INET6, handle.data() + offsetof(sockaddr_in6, sin6_addr), text.data(),
              text.size());
  return {text.data()};
}

}  // namespace

void encode_handle(const PeerHandle& peer, HandleBytes out) {
  begin(static_cast<std::uint8_t>(peer.kind), out);
  std::ranges::copy(peer.bytes, out.begin() + kPayloadAt);
}

void encode_handle(const Poison& poison, HandleBytes out) {
  begin(kPoisoned, out);
  out[kPayloadAt] = static_cast<std::byte>(poison.reason);
  const std::size_t n = std::min(poison.host.size(), Poison::kMaxHost);
  std::memcpy(out.data() + kPayloadAt + 1, poison.host.data(), n);
}

DecodedHandle decode_handle(ConstHandleBytes handle) {
  assert(handle.size() >= kShortHandleBytes);
  const auto magic = handle.subspan(kMagicAt, kMagic.size());
  if (!std::ranges::equal(magic, kMagic) || handle[0] != std::byte{0} || handle[1] != std::byte{0})
    return describe_foreign(handle);
  const auto version_kind = std::to_integer<std::uint8_t>(handle[kVersionKindAt]);
  const auto version = static_cast<std::uint8_t>(version_kind >> 4U);
  if (version != kHandleVersion) return OtherVersion{version};

  const auto payload = handle.subspan(kPayloadAt, PeerHandle::kCapacity);
  const auto kind = static_cast<std::uint8_t>(version_kind & (kTuned - 1U));
  if (is_transport(kind)) {
    PeerHandle peer{.kind = static_cast<TransportKind>(kind)};
    std::ranges::copy(payload, peer.bytes.begin());
    return peer;
  }
  if (kind != kPoisoned) return UnknownKind{kind};
  Poison poison;
  const auto reason = std::to_integer<std::uint8_t>(payload[0]);
  poison.reason = reason <= static_cast<std::uint8_t>(Errc::kSystem) ? static_cast<Errc>(reason)
                                                                     : Errc::kSystem;
  for (const std::byte b : payload.subspan(1)) {
    const char c = std::to_integer<char>(b);
    if (c == '\0') break;
    poison.host += c > ' ' && c <= '~' ? c : '?';  // It goes into a log line.
  }
  return poison;
}

bool is_tuned(ConstHandleBytes handle) {
  return (handle[kVersionKindAt] & std::byte{kTuned}) != std::byte{0};
}

void set_tuned(HandleBytes handle) { handle[kVersionKindAt] |= std::byte{kTuned}; }

void* connect_state(ConstHandleBytes handle) {
  assert(handle.size() >= kHandleBytes);
  void* state = nullptr;
  std::memcpy(&state, handle.data() + kConnectStateAt, sizeof state);
  return state;
}

void set_connect_state(HandleBytes handle, void* state) {
  assert(handle.size() >= kHandleBytes);
  std::memcpy(handle.data() + kConnectStateAt, &state, sizeof state);
}

}  // namespace ztcp::plugin
