// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A program ("update-grub", "systemctl daemon-reload") that makes other programs read the resources
// between the previous notices and this one: run behind them when one of them changed, and again
// when they are reverted.
#pragma once

#include <string>
#include <vector>

#include "tools/ztcp_setup/resources/kind.h"

namespace ztcp::setup::resource {

struct Notice {
  std::vector<std::string> argv;

  struct Before {
    bool due = false;  // A resource it announces has changed since it ran.
    void fields(Fields& fields) { fields.flag("due", due); }
  };
  static constexpr const char* kKind = "notice";
  static constexpr bool kLostAtBoot = false;
  std::string id() const;
  void check(Host& host, const Others& others, config::Problems& problems) const;
  bool holds(Host&) const { return false; }
  Read<Before> before(Host&) const { return Before{true}; }
  Preview preview(Host& host) const;
  Done apply(Host& host, Before& before) const;
  Reverted revert(Host& host, const Before& before) const;
  void fields(Fields& fields) { fields.texts("argv", argv); }
};

}  // namespace ztcp::setup::resource
