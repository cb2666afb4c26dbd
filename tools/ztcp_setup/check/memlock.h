// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The memory that a user's sessions may lock, as PAM will set it: /etc/security/limits.conf and
// limits.d. Read from the files, so that root can check it for others.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "config/machine/machine.h"

namespace ztcp::setup {

inline constexpr std::uint64_t kUnlimitedKib = UINT64_MAX;

// The soft limit in KiB; absent: not set in the files, so sessions keep the system's default.
// `user` may be empty: then the limit of a member of `groups` without lines of its own.
std::optional<std::uint64_t> session_memlock_kib(config::Machine& machine, const std::string& user,
                                                 const std::set<std::string>& groups);

}  // namespace ztcp::setup
