// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The opaque handle that listen() fills, NCCL carries to the peer, and the peer's connect() reads.
//
//   0-1    zero: NCCL's own networks read an address family here, and an unknown one makes them
//          fail cleanly should our handle reach them
//   2-4    magic
//   5      version (high nibble) and kind (low nibble): a TransportKind, or 2 for a poisoned one
//   6-39   payload: a PeerHandle's first bytes, or in a poisoned handle the reason, device and host
//   40-71  zero as issued: NCCL's Socket and IB keep pointers there and would follow them
//   72-79  connect state: written by the connecting side into its own copy
//   80-95  the issuing rank's Agreement; zero in a poisoned handle
//   96     number of bytes that follow: a PeerHandle's last bytes, without leading zeros
//   97-127 these bytes, then the issuing host's name, cut, padded with zeros
//
// v3 and v4 handles end at byte 63. They equal the others up to byte 39 and have the Agreement in
// bytes 40-55, the number in byte 56 and the PeerHandle's last bytes behind it if these are 7 at
// most, else none. They have no host. The networks of NCCL 2.6 to 2.11 read no further than byte
// 35.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "core/result.h"
#include "plugin/agreement.h"
#include "transport/transport.h"

namespace ztcp::plugin {

inline constexpr std::size_t kHandleBytes = 128;
inline constexpr std::size_t kShortHandleBytes = 64;  // v3, v4
// Increase whenever the meaning of the payload or the Agreement changes, including the numbers of
// reasons.
inline constexpr std::uint8_t kHandleVersion = 7;

// At least kShortHandleBytes; the connect state needs kHandleBytes.
using HandleBytes = std::span<std::byte>;
using ConstHandleBytes = std::span<const std::byte>;

// The handle of a listener that cannot work: listen() must not fail, or the other ranks hang in
// NCCL's bootstrap, so the handle itself carries the refusal.
struct Poison {
  static constexpr std::size_t kMaxHost = PeerHandle::kBaseBytes - 5;
  // NCCL named a device number that this rank does not have.
  struct Unshown {
    std::int16_t device = 0;
    std::uint16_t shown = 0;  // Number of devices this rank has, not 0.
  };
  Errc reason = Errc::kBadConfig;
  std::string host;                  // Host to look at; cut to kMaxHost bytes.
  std::optional<Unshown> unshown{};  // Set if this is the reason.
};

// Written by another network plugin or an incompatible version of ztcp.
struct ForeignHandle {
  std::string peer;  // "10.1.2.3" when the bytes begin like NCCL's own handles; may be empty.
};
struct OtherVersion {
  std::uint8_t version = 0;
};
// A handle of our version, but of a kind that this release does not know.
struct UnknownKind {
  std::uint8_t kind = 0;
};

using DecodedHandle = std::variant<PeerHandle, Poison, ForeignHandle, OtherVersion, UnknownKind>;

// Both write every byte of `out`. The first returns false if `out` was too short for the
// PeerHandle's last bytes.
bool encode_handle(const PeerHandle& peer, HandleBytes out);
void encode_handle(const Poison& poison, HandleBytes out);
DecodedHandle decode_handle(ConstHandleBytes handle);

// Properties of the issuing rank, sent beside a PeerHandle. The handle's size shows whether it is
// short; widen() extends a short one before decode_handle().
struct Issuer {
  Agreement agreement;
  std::string host;  // Cut to the available space; empty in short handles.
};
void set_issuer(const Issuer& issuer, HandleBytes handle);
Issuer issuer_of(ConstHandleBytes handle);
std::array<std::byte, kHandleBytes> widen(ConstHandleBytes short_handle);

// The connecting side's state between calls, in its own copy of the handle; nullptr: none.
void* connect_state(ConstHandleBytes handle);
void set_connect_state(HandleBytes handle, void* state);

}  // namespace ztcp::plugin
