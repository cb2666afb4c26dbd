// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Libraries that are opened at run time, so that the plugin does not need them to load. Their
// symbols are taken with a version: another library of the same name is refused by name.
#pragma once

#include <string>

#include "core/result.h"

namespace ztcp {

inline constexpr const char* kVerbsPackages = "apt install ibverbs-providers, or rdma-core";

// Stays open for good. `packages` have the library: the error names them, and is a sentence for the
// operator, without a full stop.
Result<void*, std::string> open_shared_library(const char* name, const char* packages);

// Null: the library has no such symbol.
void* find_symbol(void* library, const char* symbol, const char* version);

// Takes symbols until one is missing.
class SymbolTaker {
 public:
  SymbolTaker(void* library, const char* version) : library_(library), version_(version) {}

  template <class Function>
  void take(Function*& to, const char* symbol) {
    if (missing_ != nullptr) return;
    take_optional(to, symbol, version_);
    if (to == nullptr) missing_ = symbol;
  }
  template <class Function>
  void take_optional(Function*& to, const char* symbol, const char* version) {
    to = reinterpret_cast<Function*>(find_symbol(library_, symbol, version));
  }
  // Names a function that the library `name` lacks; empty: it lacks none.
  std::string fault(const char* name) const;

 private:
  void* library_;
  const char* version_;
  const char* missing_ = nullptr;
};

}  // namespace ztcp
