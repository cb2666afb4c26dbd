// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Addresses as scripts write them: a name of the test's hosts, or the address itself.
#pragma once

#include <string>

#include "core/address.h"

namespace ztcp::tcp::test {

class Names {
 public:
  // `own`: the stack's address at the moment; unspecified while it has none.
  Names(bool is_ipv6, IpAddress own) : is_ipv6_(is_ipv6), own_(own) {}

  IpAddress address(const std::string& text) const;
  static MacAddress mac(const std::string& text);
  // The name, or the address where none is known.
  std::string text_of(IpAddress address) const;
  static std::string text_of(const MacAddress& mac);

 private:
  bool is_ipv6_;
  IpAddress own_;
};

}  // namespace ztcp::tcp::test
