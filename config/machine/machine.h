// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Small readings of /sys, /proc and /dev. Nothing here fails: what can't be read is absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ztcp::config {

// First line of a file, without blanks around it.
std::optional<std::string> read_line(const std::string& path);
std::optional<std::string> read_text(const std::string& path);
// Last part of what a symbolic link points at: ".../drivers/vfio-pci" -> "vfio-pci".
std::optional<std::string> link_name(const std::string& path);
// Sorted names, without "." and "..".
std::vector<std::string> list_folder(const std::string& path);
bool exists(const std::string& path);
bool is_folder(const std::string& path);
// By the effective user, as open() would judge.
bool may_access(const std::string& path, int mode);

// "Name:   value" of /proc/self/status.
std::optional<std::string> status_field(const std::string& proc, std::string_view name);
// The soft limit in bytes; absent when it can't be read, UINT64_MAX when unlimited.
std::optional<std::uint64_t> locked_memory_limit(const std::string& proc);
bool has_capability(const std::string& proc, unsigned capability);

// Number of a PCI function's IOMMU group, or of vfio's stand-in for one; empty: none.
std::string iommu_group(const std::string& sys, const std::string& pci);

// Names of the network interfaces of a PCI function, while a kernel driver has it.
std::vector<std::string> interfaces_of(const std::string& pci_folder);

}  // namespace ztcp::config
