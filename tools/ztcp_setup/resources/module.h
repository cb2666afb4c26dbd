// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A loaded kernel module or driver.
#pragma once

#include <string>

#include "tools/ztcp_setup/resources/kind.h"

namespace ztcp::setup::resource {

struct Module {
  std::string name;

  struct Before {  // It was not loaded.
    void fields(Fields&) {}
  };
  static constexpr const char* kKind = "module";
  static constexpr bool kLostAtBoot = true;
  std::string id() const { return name; }
  void check(Host& host, const Others& others, config::Problems& problems) const;
  bool holds(Host& host) const;
  Read<Before> before(Host&) const { return Before{}; }
  Preview preview(Host& host) const;
  Done apply(Host& host, Before& before) const;
  Reverted revert(Host& host, const Before& before) const;
  std::string restored(const Before& before) const;
  void tell(Others& others) const { others.load_module = true; }
  void fields(Fields& fields) { fields.text("name", name); }
};

}  // namespace ztcp::setup::resource
