// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/core/pci_path.h"

#include <filesystem>
#include <system_error>

namespace ztcp {

std::string pci_path_of(const std::string& sys_root, const std::string& device) {
  namespace fs = std::filesystem;
  const fs::path functions = fs::path(sys_root) / "bus/pci/devices";
  std::error_code error;
  for (fs::path at = fs::canonical(device, error); at.has_relative_path(); at = at.parent_path())
    if (fs::exists(functions / at.filename(), error)) return at;
  return {};
}

}  // namespace ztcp
