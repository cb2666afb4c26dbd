// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The constant part of a machine: /sys and /proc of a tree on disk (tests/data/trees), shown where
// the machine in memory has nothing itself. Shared by copies of a machine.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/tree.h"
#include "tools/ztcp_setup/host/host.h"

namespace ztcp::setup::test {

class FakeTree {
 public:
  explicit FakeTree(std::string_view description) : tree_(description) {}

  const std::string& root() const { return tree_.root(); }
  const config::Network& network() const { return tree_.network(); }

  std::optional<std::string> read(const std::string& path) const;
  std::string line(const std::string& path) const;  // The first line; empty: none.
  std::optional<std::string> link_target(const std::string& path) const;
  std::string link_name(const std::string& path) const;            // The target's last part.
  std::vector<std::string> list(const std::string& folder) const;  // Sorted.
  FileKind kind(const std::string& path) const;                    // Does not follow links.

  // All files, folders and links outside /sys and /proc.
  std::vector<std::string> paths_on_disk() const;
  // PCI functions of the network class.
  std::vector<std::string> nics() const;
  // Interfaces of a PCI function.
  std::vector<std::string> interfaces_of(const std::string& pci) const;

 private:
  ztcp::test::Tree tree_;
};

}  // namespace ztcp::setup::test
