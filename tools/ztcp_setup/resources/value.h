// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One value of sysfs or procfs. If the kernel gives less than requested, that is a fault with both
// numbers.
#pragma once

#include <string>

#include "tools/ztcp_setup/resources/kind.h"

namespace ztcp::setup::resource {

struct Value {
  std::string path;
  std::string value;
  // A larger number is accepted: another program has reserved pages.
  bool at_least = false;

  struct Before {
    std::string value;
    std::string reached;  // The kernel's result; until that is known, the request.
    void fields(Fields& fields);
  };
  static constexpr const char* kKind = "value";
  static constexpr bool kLostAtBoot = true;
  std::string id() const { return path; }
  void check(Host& host, const Others& others, config::Problems& problems) const;
  bool holds(Host& host) const;
  Read<Before> before(Host& host) const;
  Preview preview(Host& host) const;
  Done apply(Host& host, Before& before) const;
  Reverted revert(Host& host, const Before& before) const;
  std::string restored(const Before& before) const;
  // Pages: missing ones may become available later.
  bool may_fall_short() const { return at_least; }
  // Counts pages as ours that were missing at first and exist now.
  void hold_more(Before& before) const;
  void fields(Fields& fields);

 private:
  bool fulfilled_by(const std::string& value) const;
};

}  // namespace ztcp::setup::resource
