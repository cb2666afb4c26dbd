// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// An enabled systemd unit. Undo disables it if it was not enabled before.
#pragma once

#include <string>

#include "tools/ztcp_setup/resources/kind.h"

namespace ztcp::setup::resource {

struct Unit {
  std::string name;  // "ztcp-setup.service"

  struct Before {  // It was not enabled.
    void fields(Fields&) {}
  };
  static constexpr const char* kKind = "unit";
  static constexpr bool kLostAtBoot = false;
  std::string id() const { return name; }
  void check(Host& host, const Others& others, config::Problems& problems) const;
  bool holds(Host& host) const;
  Read<Before> before(Host&) const { return Before{}; }
  Preview preview(Host& host) const;
  Done apply(Host& host, Before& before) const;
  Reverted revert(Host& host, const Before& before) const;
  std::string restored(const Before& before) const;
  void fields(Fields& fields) { fields.text("name", name); }
};

}  // namespace ztcp::setup::resource
