// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The secret that the ranks of a run share, and its proofs. It is never sent: each side answers the
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

// Fails when the kernel has none to give.
Nonce random_nonce();
// 32 hexadecimal digits, for ranks that are started here.
std::string random_secret();

// In this order: what the launcher of local ranks left at the descriptor ZTCP_PERF_SECRET_FD,
// `file` (--secret-file), ZTCP_PERF_SECRET; empty: there is none. Fails, naming the source, where
// it can't be read, is too short, or is a file that others may read.
std::string find_secret(const std::string& file, const Lookup& environment);

// That the sender of `hello` (its payload behind the proof) knows the secret.
Proof prove_rank(const std::string& secret, const Nonce& challenge,
                 std::span<const std::byte> hello);
// That the sender of the challenge does.
Proof prove_rank_0(const std::string& secret, const Nonce& challenge, const Nonce& rank_nonce);

}  // namespace ztcp::perf
