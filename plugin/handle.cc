// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/handle.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cassert>
#include <cstring>
#include <string_view>
#include <sys/socket.h>

namespace ztcp::plugin {
namespace {

constexpr std::array<std::byte, 3> kMagic = {std::byte{'z'}, std::byte{'T'}, std::byte{0xc9}};
constexpr std::size_t kMagicAt = 2;
constexpr std::size_t kVersionKindAt = 5;
constexpr std::size_t kPayloadAt = 6;
constexpr std::size_t kZeroFrom = kPayloadAt + PeerHandle::kBaseBytes;
constexpr std::size_t kConnectStateAt = 72;
constexpr std::size_t kAgreementAt = 80;
constexpr std::size_t kMoreAt = kAgreementAt + kAgreementBytes;
constexpr std::size_t kShortAgreementAt = kZeroFrom;
constexpr std::size_t kShortMoreAt = kShortAgreementAt + kAgreementBytes;
static_assert(kZeroFrom == 40, "bytes 40-71 of a long handle belong to nobody");
static_assert(kMoreAt + 1 + PeerHandle::kMoreBytes < kHandleBytes);
static_assert(kShortMoreAt < kShortHandleBytes);

// Offsets in the payload of a poisoned handle.
constexpr std::size_t kDeviceAt = 1;
constexpr std::size_t kShownAt = 3;
constexpr std::size_t kPoisonHostAt = 5;

// Must differ from all values of TransportKind.
constexpr std::uint8_t kPoisoned = 2;
constexpr std::uint8_t kKindMask = 0x0f;

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

void put_text(std::string_view text, HandleBytes out) {
  std::ranges::fill(out, std::byte{0});
  std::memcpy(out.data(), text.data(), std::min(text.size(), out.size()));
}

// From the number of the PeerHandle's last bytes to the end of the handle.
template <class Byte>
std::span<Byte> more_of(std::span<Byte> handle) {
  return handle.size() < kHandleBytes ? handle.first(kShortHandleBytes).subspan(kShortMoreAt)
                                      : handle.first(kHandleBytes).subspan(kMoreAt);
}

// The PeerHandle's last bytes; none if the number is impossible.
ConstHandleBytes last_bytes(ConstHandleBytes handle) {
  const ConstHandleBytes more = more_of(handle);
  const auto count = std::to_integer<std::size_t>(more[0]);
  return more.subspan(1, count <= std::min(PeerHandle::kMoreBytes, more.size() - 1) ? count : 0);
}

// For log lines: a damaged handle may hold any bytes.
std::string printable_text(ConstHandleBytes bytes) {
  std::string text;
  for (const std::byte b : bytes) {
    const char c = std::to_integer<char>(b);
    if (c == '\0') break;
    text += c > ' ' && c <= '~' ? c : '?';
  }
  return text;
}

Poison decode_poison(ConstHandleBytes payload) {
  Poison poison;
  const auto reason = std::to_integer<std::uint8_t>(payload[0]);
  poison.reason = reason <= static_cast<std::uint8_t>(Errc::kSystem) ? static_cast<Errc>(reason)
                                                                     : Errc::kSystem;
  Poison::Unshown unshown;
  std::memcpy(&unshown.device, &payload[kDeviceAt], sizeof unshown.device);
  std::memcpy(&unshown.shown, &payload[kShownAt], sizeof unshown.shown);
  if (unshown.shown != 0) poison.unshown = unshown;
  poison.host = printable_text(payload.subspan(kPoisonHostAt));
  return poison;
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

bool encode_handle(const PeerHandle& peer, HandleBytes out) {
  begin(static_cast<std::uint8_t>(peer.kind), out);
  const std::span bytes(peer.bytes);
  std::ranges::copy(bytes.first<PeerHandle::kBaseBytes>(), out.begin() + kPayloadAt);
  ConstHandleBytes last = bytes.last<PeerHandle::kMoreBytes>();
  while (!last.empty() && last.front() == std::byte{0}) last = last.subspan(1);
  const HandleBytes more = more_of(out);
  if (last.size() > more.size() - 1) return false;
  more[0] = static_cast<std::byte>(last.size());
  std::ranges::copy(last, more.begin() + 1);
  return true;
}

void encode_handle(const Poison& poison, HandleBytes out) {
  begin(kPoisoned, out);
  const HandleBytes payload = out.subspan(kPayloadAt, PeerHandle::kBaseBytes);
  payload[0] = static_cast<std::byte>(poison.reason);
  const Poison::Unshown unshown = poison.unshown.value_or(Poison::Unshown{});
  std::memcpy(&payload[kDeviceAt], &unshown.device, sizeof unshown.device);
  std::memcpy(&payload[kShownAt], &unshown.shown, sizeof unshown.shown);
  put_text(poison.host, payload.subspan(kPoisonHostAt));
}

DecodedHandle decode_handle(ConstHandleBytes handle) {
  assert(handle.size() >= kShortHandleBytes);
  const auto magic = handle.subspan(kMagicAt, kMagic.size());
  if (!std::ranges::equal(magic, kMagic) || handle[0] != std::byte{0} || handle[1] != std::byte{0})
    return describe_foreign(handle);
  const auto version_kind = std::to_integer<std::uint8_t>(handle[kVersionKindAt]);
  const auto version = static_cast<std::uint8_t>(version_kind >> 4U);
  if (version != kHandleVersion) return OtherVersion{version};

  const auto payload = handle.subspan(kPayloadAt, PeerHandle::kBaseBytes);
  const auto kind = static_cast<std::uint8_t>(version_kind & kKindMask);
  if (is_transport(kind)) {
    PeerHandle peer{.kind = static_cast<TransportKind>(kind)};
    std::ranges::copy(payload, peer.bytes.begin());
    const ConstHandleBytes last = last_bytes(handle);
    std::copy_backward(last.begin(), last.end(), peer.bytes.end());
    return peer;
  }
  if (kind != kPoisoned) return UnknownKind{kind};
  return decode_poison(payload);
}

void set_issuer(const Issuer& issuer, HandleBytes handle) {
  assert(handle.size() >= kShortHandleBytes);
  if (handle.size() < kHandleBytes) {
    encode(issuer.agreement, handle.subspan<kShortAgreementAt, kAgreementBytes>());
    return;
  }
  encode(issuer.agreement, handle.subspan<kAgreementAt, kAgreementBytes>());
  put_text(issuer.host, more_of(handle).subspan(1 + last_bytes(handle).size()));
}

Issuer issuer_of(ConstHandleBytes handle) {
  assert(handle.size() >= kShortHandleBytes);
  if (handle.size() < kHandleBytes)
    return {decode_agreement(handle.subspan<kShortAgreementAt, kAgreementBytes>()), {}};
  return {decode_agreement(handle.subspan<kAgreementAt, kAgreementBytes>()),
          printable_text(more_of(handle).subspan(1 + last_bytes(handle).size()))};
}

std::array<std::byte, kHandleBytes> widen(ConstHandleBytes short_handle) {
  assert(short_handle.size() >= kShortHandleBytes);
  std::array<std::byte, kHandleBytes> out{};
  std::ranges::copy(short_handle.first(kZeroFrom), out.begin());
  std::ranges::copy(short_handle.subspan(kShortAgreementAt, kAgreementBytes),
                    out.begin() + kAgreementAt);
  const ConstHandleBytes last = last_bytes(short_handle);
  out[kMoreAt] = static_cast<std::byte>(last.size());
  std::ranges::copy(last, out.begin() + kMoreAt + 1);
  return out;
}

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
