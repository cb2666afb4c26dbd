// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <algorithm>

#include <fmt/format.h>

#include "config/file/fields.h"
#include "core/shell_word.h"
#include "tools/ztcp_setup/plan/steps.h"

namespace ztcp::setup {
namespace {

using config::Severity;

void judge_names(const PlanInput& input, const char* option,
                 const std::set<std::string, std::less<>>& names, Plan& plan) {
  const auto& nics = plan.topology.nics;
  for (const std::string& name : names) {
    // The address may be on a bond or a VLAN.
    if (input.transport() == Transport::kSockets && plan.network.find(name) != nullptr) continue;
    if (std::any_of(nics.begin(), nics.end(),
                    [&](const auto& nic) { return nic.pci == name || nic.interface == name; }))
      continue;
    const auto& rdma = plan.topology.rdma;
    const bool is_over_rdma = input.transport() == Transport::kVerbs;
    if (is_over_rdma && std::any_of(rdma.begin(), rdma.end(),
                                    [&](const auto& one) { return has_name_of({name}, one); }))
      continue;
    std::string known;
    for (const config::HostNic& one : rdma)
      if (is_over_rdma)
        known += fmt::format("{}{} {}", known.empty() ? "" : ", ", one.rdma->device, one.interface);
    for (const config::HostNic& nic : nics)
      known += fmt::format("{}{} {}", known.empty() ? "" : ", ", nic.pci, nic.interface);
    plan.note(Severity::kFault, "nics", fmt::format("{} {}", option, name),
              fmt::format("no {} has this name or address; there are: {}",
                          is_over_rdma ? "RDMA device or NIC on PCI" : "NIC on PCI",
                          known.empty() ? "none" : known),
              "name one of them, or omit the option");
  }
}

config::NicDriver driver_of(Transport transport) {
  switch (transport) {
    case Transport::kSockets:
      return config::NicDriver::kSocket;
    case Transport::kXdp:
      return config::NicDriver::kXdp;
    case Transport::kMlx5:
      return config::NicDriver::kMlx5;
    case Transport::kVerbs:
      return config::NicDriver::kVerbs;
    case Transport::kUstack:
      break;
  }
  return config::NicDriver::kPci;
}

void judge_config(const PlanInput& input, Plan& plan) {
  const std::string& path = input.request.config_path;
  if (path.ends_with('/'))
    plan.note(Severity::kFault, "config", path, "names a folder, wanted a file",
              fmt::format("ztcp_setup --config {}ztcp.conf", shell_word(path)));
  if (input.request.mode != Mode::kFresh && !input.existing)
    plan.note(Severity::kFault, "config", path, "no readable config",
              "ztcp_setup without --add plans anew");
  if (!input.existing || input.existing->nics.empty()) return;
  const auto& nics = input.existing->nics;
  const config::NicDriver first = nics.front().driver;
  const char* const mend = "ztcp_setup --config FILE writes another file, or remove this one";
  if (std::any_of(nics.begin(), nics.end(), [](const config::Nic& nic) {
        return nic.driver == config::NicDriver::kMemif || nic.driver == config::NicDriver::kTap;
      }))
    plan.note(Severity::kFault, "config", path,
              "is a fabric of software NICs, written with --local or by hand; not changed", mend);
  else if (std::any_of(nics.begin(), nics.end(),
                       [&](const config::Nic& nic) { return nic.driver != first; }))
    plan.note(Severity::kFault, "config", path,
              "has NICs of several drivers, written by hand; not changed", mend);
  else if (input.request.mode == Mode::kAdd && input.request.transport &&
           driver_of(*input.request.transport) != first)
    plan.note(Severity::kFault, "transport", "--add",
              fmt::format("differs from the config: its NICs have driver = \"{}\"",
                          config::name_of(first)),
              "omit --transport; or omit --add, to plan anew");
}

void judge_accounts(const PlanInput& input, Plan& plan) {
  const std::string& user = input.user();
  const std::string& group = input.group();
  if (!user.empty() && !input.host.user_id(user))
    plan.note(Severity::kFault, "account", "--user " + user, "no such user on this machine",
              "getent passwd lists them");
  if (!group.empty() && !input.host.group_id(group))
    plan.note(Severity::kFault, "account", "--group " + group, "no such group on this machine",
              fmt::format("sudo groupadd --system {}", shell_word(group)));
  if (input.existing && !input.existing->messages.cluster_key.empty() && group.empty() &&
      !user.empty())
    plan.note(Severity::kFault, "account", "--user " + user,
              "the config holds a cluster_key, and only a group can be allowed to read it",
              "ztcp_setup --group GROUP, of which the user is a member");
}

}  // namespace

void judge_request(const PlanInput& input, Plan& plan) {
  judge_names(input, "--keep", input.request.selection.keep, plan);
  judge_names(input, "--take", input.request.selection.take, plan);
  judge_config(input, plan);
  judge_accounts(input, plan);
}

}  // namespace ztcp::setup
