// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/shared_library.h"

#include <dlfcn.h>

#include <fmt/format.h>

namespace ztcp {

Result<void*, std::string> open_shared_library(const char* name, const char* packages) {
  void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  const char* const text = dlerror();
  const std::string reason = text != nullptr ? text : "no reason given";
  // If the file named first is another one, a library that this one needs is missing.
  if (reason.starts_with(fmt::format("{}: ", name)) &&
      reason.find("No such file") != std::string::npos)
    return tl::unexpected(fmt::format("{} is not installed ({})", name, packages));
  return tl::unexpected(fmt::format("{} can't be opened: {}", name, reason));
}

void* find_symbol(void* library, const char* symbol, const char* version) {
  return dlvsym(library, symbol, version);
}

std::string SymbolTaker::fault(const char* name) const {
  if (missing_ == nullptr) return {};
  return fmt::format("{} has no {}@{}: it is no library of rdma-core, or is older than release 22",
                     name, missing_, version_);
}

}  // namespace ztcp
