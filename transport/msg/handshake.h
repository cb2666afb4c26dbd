// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The authenticated part of the handshake (record.h): the bytes by which each side proves its key.
#pragma once

#include <array>
#include <cstdint>

#include "transport/msg/record.h"

namespace ztcp::msg {

inline bool is_set(const ClusterKey& key) { return key != ClusterKey{}; }

// A nonce need only be fresh. The sender's session id is unguessable and unique, and no stream of
// it repeats (flow, epoch); the receiver counts under a secret.
Nonce sender_nonce(std::uint64_t session, std::uint8_t flow, std::uint32_t epoch);
Nonce receiver_nonce(const std::array<std::uint64_t, 2>& secret, std::uint64_t counter);

Digest receiver_mac(const ClusterKey& key, const Hello& hello, const Nonce& challenge);
Digest sender_mac(const ClusterKey& key, const Hello& hello, const Nonce& challenge);

}  // namespace ztcp::msg
