// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Interfaces, addresses and routes as the kernel tells them, and back. What is recorded is the
// kernel's own message, attribute for attribute: whatever flag, metric or encapsulation it carries
// goes back in as it came out, also those that this program has never heard of.
//
// Not iproute2 as a program: its JSON leaves things out and each release has other ones. Not
// libmnl: it has no archive to link, and ztcp_setup runs wherever its C library is.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tools/ztcp_setup/network.h"
#include "tools/ztcp_setup/safe_path.h"
#include "transport/core/result.h"

struct nlmsghdr;

namespace ztcp::setup {

class Rtnetlink {
 public:
  static Result<std::unique_ptr<Rtnetlink>> open();

  // Without sysctls, which are files.
  Result<std::optional<LinkState>> link(const std::string& name);
  Status set_up(const std::string& link, bool up);
  Status rename(const std::string& from, const std::string& to);
  Status set(const std::string& link, const LinkState& state);
  Status set_master(const std::string& link, const std::string& master);
  Status add_child(const std::string& parent, const LinkState& child);
  Status add_item(const std::string& link, const NetworkItem& item);

 private:
  explicit Rtnetlink(Descriptor socket) : socket_(std::move(socket)) {}
  using Visit = std::function<void(const nlmsghdr&)>;
  Status talk(nlmsghdr& request, const Visit& visit);
  Status dump(std::uint16_t type, const Visit& visit);
  Result<unsigned> index_of(const std::string& link);

  Descriptor socket_;
  unsigned sequence_ = 0;
};

}  // namespace ztcp::setup
