// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Small readings of /sys, /proc and the like. Nothing here fails: what can't be read is absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/machine/machine.h"

namespace ztcp::config {

// The text of a file, empty where it can't be read.
std::string text_of(Machine& machine, const std::string& path);
// First line of a file, without blanks around it.
std::optional<std::string> read_line(Machine& machine, const std::string& path);
// A file that holds a number, and perhaps something behind it.
std::optional<std::int64_t> read_number(Machine& machine, const std::string& path);
// Last part of what a symbolic link points at: ".../drivers/vfio-pci" -> "vfio-pci".
std::optional<std::string> link_name(Machine& machine, const std::string& path);
// Where a link leads to is what counts.
bool exists(Machine& machine, const std::string& path);
bool is_folder(Machine& machine, const std::string& path);

// "Name:   value" of /proc/self/status.
std::optional<std::string> status_field(Machine& machine, std::string_view name);
// The soft limit in bytes; absent when it can't be read, UINT64_MAX when unlimited.
std::optional<std::uint64_t> locked_memory_limit(Machine& machine);
bool has_capability(Machine& machine, unsigned capability);

// The folder of a PCI function: "/sys/bus/pci/devices/0000:3b:00.0".
std::string pci_folder(std::string_view pci);
// Number of its IOMMU group, or of vfio's stand-in for one; empty: none.
std::string iommu_group(Machine& machine, std::string_view pci);
// Names of its network interfaces, while a kernel driver has it.
std::vector<std::string> interfaces_of(Machine& machine, std::string_view pci);

}  // namespace ztcp::config
