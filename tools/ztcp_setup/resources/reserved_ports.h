// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// TCP ports that the kernel gives to no connection that asks for none. The kernel's list may have
// ports of other programs; undo leaves these.
#pragma once

#include <string>

#include "tools/ztcp_setup/resources/kind.h"

namespace ztcp::setup::resource {

struct ReservedPorts {
  std::string ports;  // "7471,61000-65535"

  struct Before {
    std::string present;  // The list before set-up first ran.
    std::string added;    // By the last run.
    void fields(Fields& fields) {
      fields.text("present", present);
      fields.text("added", added);
    }
  };
  static constexpr const char* kKind = "reserved ports";
  static constexpr bool kLostAtBoot = true;
  std::string id() const;
  void check(Host& host, const Others& others, config::Problems& problems) const;
  bool holds(Host& host) const;
  Read<Before> before(Host& host) const;
  Preview preview(Host& host) const;
  // Takes the ports of an earlier run off the list.
  Done apply(Host& host, Before& before) const;
  Reverted revert(Host& host, const Before& before) const;
  std::string restored(const Before& before) const;
  // An interrupted run may have added them.
  void hold_more(Before& before) const;
  void fields(Fields& fields) { fields.text("ports", ports); }
};

}  // namespace ztcp::setup::resource
