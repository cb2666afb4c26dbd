// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The XDP program of an interface, pinned, so that jobs of the user or group use it without the
// right to attach one. Undo takes it off.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/ztcp_setup/resources/kind.h"
#include "tools/ztcp_setup/resources/owner.h"

namespace ztcp::setup::resource {

struct XdpProgram {
  std::string interface;
  std::string address;  // "10.0.0.5"
  std::uint32_t listen_port = 0;
  std::uint32_t first_port = 0;
  std::uint32_t last_port = 0;
  std::string user;   // Empty: root.
  std::string group;  // Empty: root.
  Ids ids = {};
  std::optional<std::uint32_t> processes{};  // That share it; absent: one.

  struct Before {  // No program of ztcp's was on it.
    std::vector<std::string> made_folders;
    void fields(Fields& fields) { fields.texts("made_folders", made_folders); }
  };
  static constexpr const char* kKind = "xdp";
  static constexpr bool kLostAtBoot = true;
  std::string id() const { return interface; }
  void check(Host& host, const Others& others, config::Problems& problems) const;
  bool holds(Host& host) const;
  Read<Before> before(Host& host) const;
  Preview preview(Host& host) const;
  Done apply(Host& host, Before& before) const;
  Reverted revert(Host& host, const Before& before) const;
  std::string restored(const Before& before) const;
  void note_ids(Host& host) { ids.note(host, user, group); }
  void fields(Fields& fields);

 private:
  std::string folder() const;
  XdpSteering steering() const;
  std::uint32_t mode() const { return group.empty() ? 0600 : 0660; }
};

}  // namespace ztcp::setup::resource
