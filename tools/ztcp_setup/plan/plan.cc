// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/plan/plan.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "config/file/load.h"
#include "config/machine/readings.h"
#include "tools/ztcp_setup/plan/iommu.h"
#include "tools/ztcp_setup/plan/lease.h"
#include "tools/ztcp_setup/plan/resources_for.h"

namespace ztcp::setup {
namespace {

using config::Severity;

class Planner {
 public:
  explicit Planner(const PlanInput& input)
      : input_(input), request_(input.request), host_(input.host) {}

  Plan make() {
    auto network = host_.network();
    if (!network) return fault("machine", network.error()), std::move(plan_);
    network_ = std::move(*network);
    auto topology = config::detect(host_, host_.fsroot(), network_, selection());
    if (!topology) return fault("machine", topology.error()), std::move(plan_);
    plan_.topology = std::move(*topology);
    judge_request();
    leave_strangers_alone();
    choose_pairs();
    if (plan_.pairs.empty()) return std::move(plan_);

    config::Fabric fabric = input_.existing.value_or(config::Fabric{});
    fabric.path = request_.config_path;
    fabric.nics.clear();
    for (const config::Pair& pair : plan_.pairs) fabric.nics.push_back(nic_for(pair, fabric));
    decide_speeds(input_, plan_, fabric.nics);
    decide_host(fabric);
    PagesDecision pages = decide_pages(input_, fabric.nics, plan_.notes);
    fabric.hugepages.page_kib = pages.page_kib;
    fabric.hugepages.per_process_mib = pages.per_gpu_mib;
    fabric.hugepages.spare_mib = pages.spare_mib;
    plan_.spare_mib = pages.spare_mib;
    plan_.pages = std::move(pages.pages);
    make_resources(fabric);
    plan_.fabric = std::move(fabric);
    return std::move(plan_);
  }

 private:
  void note(Severity severity, std::string name, std::string where, std::string what,
            std::string mend) {
    plan_.notes.push_back(
        {std::move(name), severity, {std::move(where), std::move(what), std::move(mend)}});
  }
  void fault(std::string name, config::Problem problem) {
    plan_.notes.push_back({std::move(name), Severity::kFault, std::move(problem)});
  }

  const config::Nic* existing_nic(const std::string& pci) const {
    if (!input_.existing) return nullptr;
    for (const config::Nic& nic : input_.existing->nics)
      if (nic.pci == pci) return &nic;
    return nullptr;
  }
  static std::string name_of(const config::HostNic& nic) {
    return nic.interface.empty() ? nic.pci : nic.interface;
  }

  // A NIC of the config was chosen once: that clouds give it a default route of its own
  // changes nothing.
  config::Selection selection() const {
    config::Selection selection = request_.selection;
    if (request_.mode != Mode::kFresh && input_.existing)
      for (const config::Nic& nic : input_.existing->nics) selection.take.insert(nic.pci);
    return selection;
  }

  void judge_request() {
    const auto judge_names = [&](const char* option, const auto& names) {
      for (const std::string& name : names) {
        const auto& nics = plan_.topology.nics;
        if (std::any_of(nics.begin(), nics.end(),
                        [&](const auto& nic) { return nic.pci == name || nic.interface == name; }))
          continue;
        std::string known;
        for (const config::HostNic& nic : nics)
          known += fmt::format("{}{} {}", known.empty() ? "" : ", ", nic.pci, nic.interface);
        note(Severity::kFault, "nics", fmt::format("{} {}", option, name),
             fmt::format("no NIC on PCI has this name or address; there are: {}",
                         known.empty() ? "none" : known),
             "name one of them, or leave the option out");
      }
    };
    judge_names("--keep", request_.selection.keep);
    judge_names("--take", request_.selection.take);
    if (request_.mode != Mode::kFresh && !input_.existing)
      note(Severity::kFault, "config", request_.config_path, "no config that can be read",
           "ztcp_setup, without --add, looks at the machine afresh");
    if (input_.existing &&
        std::any_of(input_.existing->nics.begin(), input_.existing->nics.end(),
                    [](const config::Nic& nic) { return nic.driver != config::NicDriver::kPci; }))
      note(Severity::kFault, "config", request_.config_path,
           "is a fabric of software NICs, written with --local or by hand; it is left alone",
           "ztcp_setup --config FILE writes elsewhere, or remove the file");
    if (!user().empty() && !host_.user_id(user()))
      note(Severity::kFault, "account", "--user " + user(), "no such user on this machine",
           "getent passwd lists them");
    if (!group().empty() && !host_.group_id(group()))
      note(Severity::kFault, "account", "--group " + group(), "no such group on this machine",
           fmt::format("sudo groupadd --system {}", group()));
    if (input_.existing && !input_.existing->messages.cluster_key.empty() && group().empty() &&
        !user().empty())
      note(Severity::kFault, "account", "--user " + user(),
           "the config holds a cluster_key, and only a group can be let in to read it",
           "ztcp_setup --group GROUP, of which the user is a member");
  }

  const std::string& user() const {
    return request_.user.empty() && input_.existing ? input_.existing->host.user : request_.user;
  }
  const std::string& group() const {
    return request_.group.empty() && input_.existing ? input_.existing->host.group : request_.group;
  }

  // What vfio-pci has and no config of ours names belongs to a virtual machine or another program;
  // what nobody drives can't say its address.
  void leave_strangers_alone() {
    for (config::HostNic& nic : plan_.topology.nics) {
      if (!nic.unfit.empty() || existing_nic(nic.pci) != nullptr) continue;
      if (nic.driver == "vfio-pci")
        nic.unfit = "has vfio-pci already, and not for ztcp";
      else if (nic.interface.empty())
        nic.unfit = "has no interface, so that its address is unknown";
    }
  }

  void choose_pairs() {
    if (request_.mode == Mode::kFresh) {
      take(request_.nics ? config::take_nics(plan_.topology, *request_.nics)
                         : config::assign(plan_.topology));
      return;
    }
    if (!input_.existing) return;
    for (const config::Nic& nic : input_.existing->nics) take_again(nic);
    take_new();
  }

  void take(const tl::expected<std::vector<config::Pair>, config::Problem>& pairs) {
    if (!pairs) return fault("nics", pairs.error());
    plan_.pairs.insert(plan_.pairs.end(), pairs->begin(), pairs->end());
  }

  void take_again(const config::Nic& nic) {
    const auto& nics = plan_.topology.nics;
    const auto found = std::find_if(nics.begin(), nics.end(),
                                    [&](const config::HostNic& one) { return one.pci == nic.pci; });
    if (found == nics.end())
      return note(Severity::kWarning, "nics", nic.name,
                  fmt::format("the config has it at {}, where there is no NIC now", nic.pci),
                  "attach it again, or ztcp_setup to plan afresh");
    if (!found->unfit.empty())
      return note(Severity::kFault, "nics", nic.name,
                  fmt::format("{} {}", name_of(*found), found->unfit), "ztcp_setup to plan afresh");
    const auto& gpus = plan_.topology.gpus;
    const auto gpu = std::find_if(gpus.begin(), gpus.end(),
                                  [&](const config::Gpu& one) { return one.pci == nic.gpu_pci; });
    config::Pair pair{std::nullopt, static_cast<std::size_t>(found - nics.begin()),
                      "as in the config"};
    if (gpu != gpus.end()) pair.gpu = static_cast<std::size_t>(gpu - gpus.begin());
    plan_.pairs.push_back(pair);
  }

  // GPUs without a NIC get the NICs that came; on a machine without GPUs all that came are taken.
  void take_new() {
    std::set<std::size_t> served;
    std::set<std::size_t> taken;
    for (const config::Pair& pair : plan_.pairs) {
      taken.insert(pair.nic);
      if (pair.gpu) served.insert(*pair.gpu);
    }
    config::Topology rest = plan_.topology;
    for (const std::size_t nic : taken) rest.nics[nic].unfit = "is ztcp's already";
    const auto fit = static_cast<std::size_t>(
        std::count_if(rest.nics.begin(), rest.nics.end(),
                      [](const config::HostNic& nic) { return nic.unfit.empty(); }));
    std::vector<std::size_t> waiting;
    for (std::size_t gpu = 0; gpu < rest.gpus.size() && waiting.size() < fit; ++gpu)
      if (!served.contains(gpu)) waiting.push_back(gpu);
    if (fit == 0 || (waiting.empty() && !served.empty())) return;  // Nothing came.
    if (waiting.empty()) return take(config::take_nics(rest, request_.nics.value_or(0)));
    std::vector<config::Gpu> gpus;
    std::vector<std::vector<config::Distance>> distances;
    for (const std::size_t gpu : waiting) {
      gpus.push_back(rest.gpus[gpu]);
      distances.push_back(rest.distances[gpu]);
    }
    rest.gpus = std::move(gpus);
    rest.distances = std::move(distances);
    auto pairs = config::assign(rest);
    if (pairs)
      for (config::Pair& pair : *pairs) pair.gpu = waiting[*pair.gpu];
    take(pairs);
  }

  // "ztcp0" and up; a NIC of the config keeps its name when NICs are added.
  std::string device_name(const config::Nic& nic, const config::Fabric& fabric) const {
    if (request_.mode != Mode::kFresh && !nic.name.empty()) return nic.name;
    for (std::size_t number = fabric.nics.size();; ++number) {
      std::string name = fmt::format("ztcp{}", number);
      if (std::none_of(fabric.nics.begin(), fabric.nics.end(),
                       [&](const config::Nic& other) { return other.name == name; }))
        return name;
    }
  }

  config::Nic nic_for(const config::Pair& pair, const config::Fabric& fabric) {
    const config::HostNic& found = plan_.topology.nics[pair.nic];
    config::Nic nic;
    // What a NIC says while the kernel has it; afterwards only the config remembers.
    const config::Nic* known = existing_nic(found.pci);
    if (known != nullptr) nic = *known;
    nic.name = device_name(nic, fabric);
    if (known != nullptr && request_.mode != Mode::kFresh) {
      judge_mac(nic, found);
      return nic;
    }
    nic.driver = config::NicDriver::kPci;
    nic.pci = found.pci;
    nic.numa_node = found.numa_node;
    nic.gpu_pci = pair.gpu ? plan_.topology.gpus[*pair.gpu].pci : "";
    nic.gpu_uuid = pair.gpu ? plan_.topology.gpus[*pair.gpu].uuid : "";
    // A cloned disk image: the address in its config is another machine's.
    if (known != nullptr && !found.interface.empty() && known->mac != found.mac) {
      nic.address = {};
      nic.gateway.reset();
      nic.vlan_id = 0;
      nic.speed_mbps = 0;
    }
    // A NIC that fell back to its kernel driver without its address is still what it was.
    const bool fell_back = known != nullptr && known->mac == found.mac && !found.address;
    if (!found.interface.empty() && !fell_back) record(found, nic);
    if (nic.address == IpPrefix())
      note(Severity::kFault, "address", name_of(found),
           "has no IPv4 address, so the config can't give it one",
           fmt::format("sudo ip address add ADDRESS/LENGTH dev {}, as the network assigned it, or "
                       "ztcp_setup --keep {}",
                       name_of(found), name_of(found)));
    return nic;
  }

  void judge_mac(const config::Nic& nic, const config::HostNic& found) {
    if (!found.interface.empty() && found.mac != nic.mac)
      note(Severity::kFault, "nics", nic.name,
           fmt::format("mac = {} in the config, {} has {}: another NIC took its place",
                       to_string(nic.mac), found.interface, to_string(found.mac)),
           "ztcp_setup to plan afresh");
  }

  void record(const config::HostNic& found, config::Nic& nic) {
    nic.kernel_driver = found.driver;
    nic.mac = found.mac;
    nic.mtu_bytes = static_cast<std::uint16_t>(std::clamp(found.mtu_bytes, 576U, 9216U));
    if (found.speed_mbps != 0) nic.speed_mbps = found.speed_mbps;
    if (!found.address) return;
    nic.address = *found.address;
    nic.gateway = found.gateway;
    nic.vlan_id = found.vlan_id;
    if (!found.left_out.empty())
      note(Severity::kWarning, "address", found.interface,
           fmt::format("{} on {} is used; lost to this machine until --undo: {}",
                       to_string(*found.address), found.address_interface,
                       fmt::join(found.left_out, ", ")),
           fmt::format("ztcp_setup --keep {} leaves the NIC to the kernel", found.interface));
    record_lease(found);
  }

  void record_lease(const config::HostNic& found) {
    const config::Interface* interface = network_.find(found.address_interface);
    const auto lease =
        find_lease(host_, found.address_interface, interface == nullptr ? 0 : interface->index,
                   found.address->address);
    if (!lease && found.valid_s == config::InterfaceAddress::kForever) return;
    std::string from = "by DHCP";
    if (lease) from = fmt::format("by DHCP ({}, {})", lease->client, lease->file);
    if (lease && !lease->server.empty()) from += " from " + lease->server;
    const std::string left = found.valid_s == config::InterfaceAddress::kForever
                                 ? std::string()
                                 : fmt::format(", {} s of it left", found.valid_s);
    const std::string time = lease && lease->lifetime_s > 0
                                 ? fmt::format(" for {} s", lease->lifetime_s)
                                 : std::string();
    note(Severity::kWarning, "lease", found.address_interface,
         fmt::format("{} is leased {}{}{}; nobody renews it once ztcp has the NIC",
                     to_string(*found.address), from, time, left),
         "reserve the address for this NIC at the server (clouds do), or configure it as static");
  }

  void decide_host(config::Fabric& fabric) {
    fabric.host.machine_id = config::read_line(host_, "/etc/machine-id").value_or("");
    fabric.host.hostname = config::read_line(host_, "/proc/sys/kernel/hostname").value_or("");
    fabric.host.user = user();
    fabric.host.group = group();
    std::vector<std::string> without;
    std::set<std::string> taken;
    for (const config::Pair& pair : plan_.pairs) {
      const config::HostNic& nic = plan_.topology.nics[pair.nic];
      taken.insert(nic.pci);
      if (!nic.protects) without.push_back(name_of(nic));
    }
    if (without.empty()) return decide_class_a(fabric, taken);
    // Once given by name it stands in the config.
    const bool allowed =
        request_.no_iommu ||
        (input_.existing && input_.existing->host.host_class == config::HostClass::kNoIommu);
    fabric.host.host_class =
        request_.ask_iommu ? config::HostClass::kIommu : config::HostClass::kNoIommu;
    if (request_.ask_iommu) {
      plan_.awaits_reboot = true;
      note(Severity::kWarning, "iommu", "IOMMU",
           "asked for at the next boot; no NIC is taken before",
           "reboot, then run ztcp_setup again without --iommu");
    } else if (!allowed) {
      fault("iommu",
            no_iommu_problem(read_iommu(host_), fmt::format("{}", fmt::join(without, ", "))));
    } else if (without.size() < plan_.pairs.size()) {
      note(Severity::kFault, "iommu", "IOMMU",
           fmt::format("{} of {} NICs have an IOMMU group, {} have none; vfio works one way at a "
                       "time",
                       plan_.pairs.size() - without.size(), plan_.pairs.size(),
                       fmt::join(without, ", ")),
           fmt::format("ztcp_setup --keep {}", fmt::join(without, " --keep ")));
    } else {
      note(Severity::kWarning, "iommu", "--no-iommu",
           "a NIC that is told a wrong address writes there, whatever lies there: any job with a "
           "NIC could take over this machine, and the kernel is tainted",
           "on machines that others share, use one with an IOMMU");
    }
  }

  void decide_class_a(config::Fabric& fabric, const std::set<std::string>& taken) {
    fabric.host.host_class = config::HostClass::kIommu;
    // Directories of companies have such names: "domain users".
    for (const std::string& name : {user(), group()})
      if (name.find_first_of(" \t") != std::string::npos)
        note(Severity::kFault, "account", name,
             "has a blank in its name, which /etc/security/limits.d can't hold, so that its limit "
             "of locked memory can't be lifted",
             "sudo groupadd --system ztcp, add the users to it, ztcp_setup --group ztcp");
    if (request_.no_iommu)
      note(Severity::kWarning, "iommu", "--no-iommu",
           "not needed: this machine has an IOMMU, and it is used", "leave --no-iommu out");
    std::set<std::string> groups;
    std::vector<GroupedNic> grouped;
    for (const config::Pair& pair : plan_.pairs) {
      const config::HostNic& nic = plan_.topology.nics[pair.nic];
      grouped.push_back({name_of(nic), name_of(nic),
                         pair.gpu ? plan_.topology.gpus[*pair.gpu].pci : "", nic.iommu_group});
      if (!groups.insert(nic.iommu_group).second) continue;
      const auto holders = group_holders(host_, nic.iommu_group, taken);
      if (!holders.empty())
        note(Severity::kFault, "group", name_of(nic),
             fmt::format("shares IOMMU group {} with {}, which keep their kernel drivers; vfio "
                         "gives a group to one owner as a whole",
                         nic.iommu_group, fmt::join(holders, ", ")),
             fmt::format("another slot, ACS switched on in the BIOS, or ztcp_setup --keep {}",
                         name_of(nic)));
    }
    for (config::Problem& problem : shared_groups(grouped)) fault("group", std::move(problem));
  }

  void make_resources(const config::Fabric& fabric) {
    PlanParts parts;
    parts.pages = plan_.pages;
    // Asked for once, they stay: an argument that is not wanted any more is reverted.
    std::vector<std::string> arguments;
    for (std::string& argument : iommu_arguments(read_iommu(host_)))
      if (plan_.awaits_reboot || boots_with(host_, argument))
        arguments.push_back(std::move(argument));
    BootPlan boot = plan_boot(host_, plan_.pages, fabric.hugepages.page_kib, arguments);
    parts.boot = std::move(boot.resources);
    for (config::Check& one : boot.notes) plan_.notes.push_back(std::move(one));
    // What the operator wrote beside the values stays, as long as no value changes.
    parts.config_text =
        input_.existing && *input_.existing == fabric ? input_.existing_text : to_toml(fabric);
    // What the plugin would refuse is not set up.
    if (!plan_.has_faults())
      for (config::Problem& problem : config::parse(parts.config_text, fabric.path).problems)
        fault("config", std::move(problem));
    parts.unit_text = input_.unit_text;
    plan_.resources = plan_.awaits_reboot ? parts.boot : resources_for(fabric, parts, host_);
    if (!has_packaged_unit(host_) && input_.unit_text.empty())
      note(Severity::kWarning, "boot", kUnit,
           "is not installed, so that NICs and pages are lost at the next boot",
           "install ztcp from its package, or run ztcp_setup after each boot");
  }

  const PlanInput& input_;
  const PlanRequest& request_;
  Host& host_;
  config::Network network_;
  Plan plan_;
};

}  // namespace

std::uint64_t Plan::hugepage_mib() const {
  std::uint64_t mib = 0;
  for (const NodePages& node : pages) mib += node.want * fabric->hugepages.page_kib / 1024;
  return mib;
}

bool Plan::has_faults() const {
  return std::any_of(notes.begin(), notes.end(),
                     [](const config::Check& note) { return note.severity == Severity::kFault; });
}

Plan make_plan(const PlanInput& input) { return Planner(input).make(); }

}  // namespace ztcp::setup
