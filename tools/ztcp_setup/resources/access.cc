// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/access.h"

#include <fmt/format.h>

#include "tools/ztcp_setup/host/trust.h"
#include "tools/ztcp_setup/resources/pci_function.h"

namespace ztcp::setup::resource {
namespace {

tl::unexpected<config::Problem> no_group(const std::string& pci) {
  return tl::unexpected(
      config::Problem{pci, "has no vfio group to give access to",
                      fmt::format("ls /dev/vfio; ls -l /sys/bus/pci/devices/{}/iommu_group", pci)});
}

}  // namespace

std::string Access::node(Host& host) const {
  for (const std::string& node : pci::group_nodes(config::iommu_group(host, pci)))
    if (host.facts(node).kind == FileKind::kOther) return node;
  return {};
}

void Access::check(Host& host, const Others&, config::Problems& problems) const {
  check_names(host, pci, user, group, problems);
}

bool Access::holds(Host& host) const {
  const std::string node = this->node(host);
  const auto owner = ownership_of(host, mode, user, group, ids);
  return !node.empty() && owner && host.facts(node).ownership == *owner;
}

Read<Access::Before> Access::before(Host& host) const {
  const std::string node = this->node(host);
  if (node.empty()) return no_group(pci);
  return Before{host.facts(node).ownership};
}

Preview Access::preview(Host& host) const {
  const std::string there = node(host);
  const std::string group_number = config::iommu_group(host, pci);
  const std::string node = !there.empty()         ? there
                           : group_number.empty() ? "/dev/vfio/GROUP"
                                                  : "/dev/vfio/" + group_number;
  return {"", there.empty() ? "none" : ownership_text(host, there),
          ownership_text(mode, user, group),
          fmt::format("chown {}:{} {}; chmod {:04o} {}", or_root(user), or_root(group), node, mode,
                      node)};
}

Done Access::apply(Host& host, Before&) const {
  const std::string node = this->node(host);
  const auto owner = ownership_of(host, mode, user, group, ids);
  if (!owner) return unknown_owner(pci, user, group);
  if (node.empty()) return no_group(pci);
  if (const Status status = host.set_ownership(node, *owner); !status)
    return tl::unexpected(problem_of(host, node, status.error()));
  return {};
}

std::string Access::restored(const Before& before) const {
  return fmt::format("its node has mode {:04o}, user {} and group {} again", before.ownership.mode,
                     before.ownership.user, before.ownership.group);
}

Reverted Access::revert(Host& host, const Before& before) const {
  const std::string node = this->node(host);
  // The node disappears with the driver.
  if (node.empty() || host.facts(node).ownership == before.ownership) return {};
  if (const Status status = host.set_ownership(node, before.ownership); !status)
    return {{problem_of(host, node, status.error(),
                        fmt::format("sudo chmod {:o} {}", before.ownership.mode, node))},
            {}};
  return {};
}

void Access::fields(Fields& fields) {
  fields.text("pci", pci);
  fields.mode("mode", mode);
  fields.text("user", user);
  fields.text("group", group);
  ids.fields(fields);
}

void Access::Before::fields(Fields& fields) { fields.ownership("ownership", ownership); }

}  // namespace ztcp::setup::resource
