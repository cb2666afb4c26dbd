// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The opaque handle that listen() fills, NCCL carries to the peer, and the peer's connect() reads.
//
//   0-1    zero: NCCL's own networks read an address family here, and an unknown one makes them
//          fail cleanly should our handle reach them
//   2-4    magic
//   5      version (high nibble) and kind (low nibble): a TransportKind, or 2 for a poisoned one;
//          8 beside the kind where the host of the handle tunes NCCL's channels
//   6-39   payload: a PeerHandle's bytes, or for a poisoned handle why and on which host
//   40-71  zero as issued: NCCL's Socket and IB keep pointers there and would follow them
//   72-79  connect state: written by the connecting side into its own copy, v5 and later only
//
// v3 and v4 handles end at byte 63 and are the same up to there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "transport/core/result.h"
#include "transport/transport.h"

namespace ztcp::plugin {

inline constexpr std::size_t kHandleBytes = 128;
inline constexpr std::size_t kShortHandleBytes = 64;  // v3, v4
// Another one whenever what the payload means changes, the numbers of reasons in it included.
inline constexpr std::uint8_t kHandleVersion = 5;

// At least kShortHandleBytes; the connect state needs kHandleBytes.
using HandleBytes = std::span<std::byte>;
using ConstHandleBytes = std::span<const std::byte>;

// A listener that cannot be: listen() must not fail, or the other ranks hang in NCCL's bootstrap,
// so the handle itself carries the refusal.
struct Poison {
  static constexpr std::size_t kMaxHost = PeerHandle::kCapacity - 1;
  Errc reason = Errc::kBadConfig;
  std::string host;  // Where to look; cut to kMaxHost bytes.
};

// Written by another network or another version of ours.
struct ForeignHandle {
  std::string peer;  // "10.1.2.3" when the bytes begin like NCCL's own handles; may be empty.
};
struct OtherVersion {
  std::uint8_t version = 0;
};
// Of our version, but a kind that this release has no name for.
struct UnknownKind {
  std::uint8_t kind = 0;
};

using DecodedHandle = std::variant<PeerHandle, Poison, ForeignHandle, OtherVersion, UnknownKind>;

// Both write every byte of `out`.
void encode_handle(const PeerHandle& peer, HandleBytes out);
void encode_handle(const Poison& poison, HandleBytes out);
DecodedHandle decode_handle(ConstHandleBytes handle);

// Whether the host that issued the handle chooses NCCL's channels (Net::tuned).
bool is_tuned(ConstHandleBytes handle);
void set_tuned(HandleBytes handle);

// What the connecting side remembers between calls, in its own copy of the handle; nullptr: none.
void* connect_state(ConstHandleBytes handle);
void set_connect_state(HandleBytes handle, void* state);

}  // namespace ztcp::plugin
