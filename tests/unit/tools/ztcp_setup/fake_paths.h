// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Paths of the kernel's files in the machine in memory, and helpers to read and answer them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"

namespace ztcp::setup::test {

inline constexpr std::string_view kDevices = "/sys/bus/pci/devices/";
inline constexpr std::string_view kDrivers = "/sys/bus/pci/drivers/";
inline constexpr std::string_view kModules = "/sys/module/";
inline constexpr std::string_view kInterfaces = "/sys/class/net/";
inline constexpr std::string_view kGroups = "/sys/kernel/iommu_groups/";
inline constexpr const char* kVfio = "vfio-pci";
inline constexpr const char* kNoIommu = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode";

// "0000:3b:00.0/driver" below the folder of devices: the function and the rest.
inline std::optional<std::pair<std::string, std::string>> split_device(const std::string& path) {
  if (!path.starts_with(kDevices)) return std::nullopt;
  const std::string rest = path.substr(kDevices.size());
  const auto slash = rest.find('/');
  if (slash == std::string::npos) return std::pair(rest, std::string());
  return std::pair(rest.substr(0, slash), rest.substr(slash + 1));
}

// Number of vfio's group for a function without an IOMMU: its bus, or else its slot.
inline std::string noiommu_group(const std::string& pci) {
  const std::string bus = pci.substr(5, 2);
  return bus == "00" ? pci.substr(8, 2) : bus;
}

inline tl::unexpected<Error> error(int number, const char* where) {
  return fail(Errc::kSystem, where, number);
}

inline std::string trimmed(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

inline std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text + " ") {
    if (c != ' ') {
      word.push_back(c);
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  return words;
}

}  // namespace ztcp::setup::test
