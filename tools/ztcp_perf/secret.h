// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The secret shared by the ranks of a run, and its proofs. It is never sent: each side answers the
// other's nonce with an HMAC-SHA256. Without a secret the proofs have an empty key and prove
// nothing.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "tools/ztcp_perf/environment.h"
#include "transport/msg/hmac_sha256.h"

namespace ztcp::perf {

using Nonce = std::array<std::byte, 16>;
using Proof = msg::Digest;

// Fails if the kernel provides no random bytes.
Nonce random_nonce();
// 32 hexadecimal digits, for ranks started here.
std::string random_secret();

// Sources in this order: the descriptor in ZTCP_PERF_SECRET_FD from the launcher, `file`
// (--secret-file), ZTCP_PERF_SECRET; empty: none. Fails, naming the source, if the secret is
// unreadable, too short, or in a file that others may read.
std::string find_secret(const std::string& file, const Lookup& environment);

// Proves that the sender of `hello` (its payload behind the proof) knows the secret.
Proof prove_rank(const std::string& secret, const Nonce& challenge,
                 std::span<const std::byte> hello);
// Proves that the sender of the challenge knows it.
Proof prove_rank_0(const std::string& secret, const Nonce& challenge, const Nonce& rank_nonce);

}  // namespace ztcp::perf
