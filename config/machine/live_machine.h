// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The machine this process runs on; or, for tests, a directory tree that looks like one. The tree's
// owner counts as root.
#pragma once

#include <string>

#include "config/machine/machine.h"

namespace ztcp::config {

class LiveMachine final : public Machine {
 public:
  explicit LiveMachine(std::string root = {}) : root_(root == "/" ? "" : std::move(root)) {}

  FileFacts facts(const std::string& path) override;
  FileFacts facts_behind(const std::string& path) override;
  Result<std::string> read_value(const std::string& path) override;
  std::optional<std::string> link_target(const std::string& path) override;
  std::vector<std::string> list(const std::string& folder) override;
  bool may_access(const std::string& path, int mode) override;
  // For a tree: the CPUs it lists for the process.
  std::vector<std::uint32_t> allowed_cpus() override;

 private:
  std::string at(const std::string& path) const { return root_ + path; }
  FileFacts read_facts(const std::string& path, int flags) const;

  std::string root_;  // Prefix of each path: empty for this machine.
};

}  // namespace ztcp::config
