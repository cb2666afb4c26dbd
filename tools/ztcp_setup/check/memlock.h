// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How much memory the sessions of a user may lock, as PAM will set it: /etc/security/limits.conf
// and what lies in limits.d. Looked up, so that root can check for others.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "config/machine/machine.h"

namespace ztcp::setup {

inline constexpr std::uint64_t kUnlimitedKib = UINT64_MAX;

// The soft limit in KiB; absent: the files say nothing, and sessions keep the system's default.
// `user` may be empty, for a member of `groups` that nothing else is said about.
std::optional<std::uint64_t> session_memlock_kib(config::Machine& machine, const std::string& user,
                                                 const std::set<std::string>& groups);

}  // namespace ztcp::setup
