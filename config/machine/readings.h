// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Small readings of /sys, /proc and the like. Nothing here fails: unreadable values are absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/machine/machine.h"

namespace ztcp::config {

// The text of a file; empty if it cannot be read.
std::string text_of(Machine& machine, const std::string& path);
// The first line of a file, trimmed.
std::optional<std::string> read_line(Machine& machine, const std::string& path);
// The number at the start of a file; text may follow it.
std::optional<std::int64_t> read_number(Machine& machine, const std::string& path);
// The last part of a symbolic link's target: ".../drivers/vfio-pci" -> "vfio-pci".
std::optional<std::string> link_name(Machine& machine, const std::string& path);
// Both follow links.
bool exists(Machine& machine, const std::string& path);
bool is_folder(Machine& machine, const std::string& path);

// "Name:   value" of /proc/self/status.
std::optional<std::string> status_field(Machine& machine, std::string_view name);
// The soft limit in bytes; absent when it can't be read, UINT64_MAX when unlimited.
std::optional<std::uint64_t> locked_memory_limit(Machine& machine);
constexpr unsigned kCapIpcLock = 14;  // linux/capability.h
bool has_capability(Machine& machine, unsigned capability);

// The folder of a PCI function: "/sys/bus/pci/devices/0000:3b:00.0".
std::string pci_folder(std::string_view pci);
// The number of its IOMMU group, or of vfio's substitute for one; empty: none.
std::string iommu_group(Machine& machine, std::string_view pci);
// Names of its network interfaces; empty without a kernel driver.
std::vector<std::string> interfaces_of(Machine& machine, std::string_view pci);

}  // namespace ztcp::config
