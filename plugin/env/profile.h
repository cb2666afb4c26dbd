// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The values that libnccl-env.so gives NCCL for variables that the user has not set, so that NCCL
// takes the plugin beside it without any export. Pure: the environment and the file system are
// arguments.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace ztcp::env {

struct Facts {
  std::function<const char*(const char* name)> variable;  // nullptr: not set.
  std::function<bool(const std::string& path)> is_file;
  std::string folder;  // Where libnccl-env.so lies.
};

struct Profile {
  bool is_active = false;
  std::string plugin_path{};  // For NCCL_NET_PLUGIN; empty: the user's value holds.
  // For NCCL's log: the values with their reason, or the reason why there are none.
  std::string text{};

  // The profile's value of an NCCL variable; nullptr: it has none.
  const char* find(std::string_view name) const;
};

// Inactive if the user chooses another network, or if the plugin would not start on this host.
Profile choose(const Facts& facts);

}  // namespace ztcp::env
