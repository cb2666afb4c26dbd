// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/pci_path.h"

#include <filesystem>
#include <system_error>

namespace ztcp {

bool is_pci_address(std::string_view text) {
  constexpr std::string_view kForm = "hhhh:hh:hh.o";
  if (text.size() != kForm.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool digit = c >= '0' && c <= '9';
    const bool fits = kForm[i] == 'h'   ? digit || (c >= 'a' && c <= 'f')
                      : kForm[i] == 'o' ? c >= '0' && c <= '7'
                                        : c == kForm[i];
    if (!fits) return false;
  }
  return true;
}

std::string pci_path_of(const std::string& sys_root, const std::string& device) {
  namespace fs = std::filesystem;
  const fs::path functions = fs::path(sys_root) / "bus/pci/devices";
  std::error_code error;
  for (fs::path at = fs::canonical(device, error); at.has_relative_path(); at = at.parent_path())
    if (fs::exists(functions / at.filename(), error)) return at;
  return {};
}

}  // namespace ztcp
