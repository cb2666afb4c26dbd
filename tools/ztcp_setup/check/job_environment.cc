// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/check/job_environment.h"

#include <algorithm>
#include <string_view>
#include <strings.h>
#include <utility>

#include <fmt/format.h>

#include "config/machine/cpu_list.h"
#include "config/machine/readings.h"
#include "config/machine/text.h"
#include "core/counted.h"
#include "tools/ztcp_setup/check/library.h"
#include "tools/ztcp_setup/host/usable_cpus.h"
#include "transport/plan/device_plan.h"

namespace ztcp::setup {
namespace {

using config::Check;
using config::Severity;

class Checker {
 public:
  Checker(const config::Fabric& fabric, const JobEnvironment& job)
      : fabric_(fabric),
        job_(job),
        variables_(tools::read_nccl_variables(job.variables, [&job](const std::string& path) {
          return config::text_of(job.machine, path);
        })) {}

  std::vector<Check> run() {
    check_demand();
    check_conf_file();
    check_plugin();
    check_names("NCCL_SOCKET_IFNAME", "/sys/class/net");
    check_names("NCCL_IB_HCA", "/sys/class/infiniband");
    check_rdma_switch();
    check_cpus();
    return std::move(checks_);
  }

 private:
  void add(Severity severity, std::string name, std::string where, std::string what,
           std::string mend) {
    checks_.push_back(
        {std::move(name), severity, {std::move(where), std::move(what), std::move(mend)}});
  }

  std::string variable(std::string_view name) const { return variables_.value_of(name); }
  std::string place_of(std::string_view name) const { return variables_.place_of(name); }

  std::string removal_of(std::string_view name) const {
    const auto it = variables_.origins.find(name);
    if (it == variables_.origins.end()) return fmt::format("unset {}", name);
    return fmt::format("sudo sed -i '/^{}=/d' {}", name, it->second);
  }

  // Checks the library that NCCL will open. NCCL_NET_PLUGIN may name several; NCCL takes the first.
  void check_plugin() {
    const std::string value = variable("NCCL_NET_PLUGIN");
    const std::string plugin(value.substr(0, value.find(',')));
    if (plugin.empty()) return checks_.push_back(check_library(job_));
    const std::string place = place_of("NCCL_NET_PLUGIN");
    const std::string removal = removal_of("NCCL_NET_PLUGIN");
    if (plugin == "none")
      return add(Severity::kWarning, "nccl", place, "\"none\", so NCCL does not load ztcp",
                 removal);
    checks_.push_back(check_named_library(job_, plugin, place, removal));
  }

  // NCCL's own variable, often left over from earlier use.
  void check_rdma_switch() {
    const bool on_rdma =
        std::any_of(fabric_.nics.begin(), fabric_.nics.end(),
                    [](const config::Nic& nic) { return nic.driver == config::NicDriver::kVerbs; });
    if (on_rdma && variable("NCCL_IB_DISABLE") == "1")
      add(Severity::kWarning, "nccl", place_of("NCCL_IB_DISABLE"),
          "is 1, so all RDMA devices of the config refuse connections",
          removal_of("NCCL_IB_DISABLE"));
  }

  // Whether NCCL may go on without ztcp: the operator's choice, and no fault either way.
  void check_demand() {
    const std::string net = variable("NCCL_NET");
    if (net.empty())
      add(Severity::kGood, "nccl", "NCCL_NET",
          fmt::format(
              "set neither in the environment nor in {}: where ztcp can't start, NCCL silently "
              "goes "
              "on with its own network; the line NCCL_NET=ztcp in /etc/nccl.conf makes it end "
              "every such job instead",
              fmt::join(tools::nccl_files(job_.variables), " or ")),
          "");
    else if (strcasecmp(net.c_str(), "ztcp") == 0)
      add(Severity::kGood, "nccl", place_of("NCCL_NET"),
          "ztcp: where ztcp can't start, the job ends instead of using NCCL's own network", "");
    else
      add(Severity::kWarning, "nccl", place_of("NCCL_NET"), fmt::format("is \"{}\", not ztcp", net),
          "export NCCL_NET=ztcp");
  }

  void check_conf_file() {
    const auto it = job_.variables.find(tools::kNcclFileVariable);
    if (it == job_.variables.end() || it->second.empty()) return;
    if (!job_.machine.read_value(it->second))
      add(Severity::kWarning, "nccl", tools::kNcclFileVariable,
          fmt::format("names {}, which can't be read; NCCL does not report that, and does not read "
                      "~/.nccl.conf either",
                      it->second),
          fmt::format("unset {}, or name an existing file", tools::kNcclFileVariable));
  }

  // NCCL's syntax: a list of prefixes, "=" before exact names, "^" before excluded ones.
  // NCCL_IB_HCA adds ":port". A name without a match may be a NIC that ztcp took.
  void check_names(const char* name, const std::string& folder) {
    std::string value = variable(name);
    if (value.empty() || value.front() == '^') return;
    const bool exact = value.front() == '=';
    const auto present = job_.machine.list(folder);
    std::vector<std::string> wrong;  // Findings.
    std::vector<std::string> right;
    if (exact) value.erase(0, 1);
    for (const std::string_view wanted : config::split(value, ',')) {
      const std::string port(wanted.substr(std::min(wanted.find(':'), wanted.size())));
      const std::string stem(wanted.substr(0, wanted.size() - port.size()));
      bool any = false;
      for (const std::string& candidate : present) {
        if (exact ? candidate != stem : !candidate.starts_with(stem)) continue;
        any = true;
        if (const std::string owner = taken_as(folder, candidate); owner.empty())
          right.push_back(candidate + port);
        else
          wrong.push_back(fmt::format("names {}, which ztcp uses as {}", candidate, owner));
      }
      if (!any)
        wrong.push_back(
            fmt::format("\"{}\" matches nothing under {}; NICs that ztcp took are not listed there",
                        stem, folder));
    }
    for (std::string& what : wrong)
      add(Severity::kFault, "nccl", place_of(name), std::move(what), mend_of_names(name, right));
  }

  // Keeps the variable's valid names, as exact names, or else names the default route's interface.
  // The environment overrides NCCL's files.
  std::string mend_of_names(const std::string& name, std::vector<std::string> right) const {
    if (right.empty() && name == "NCCL_SOCKET_IFNAME" && !job_.default_interface.empty())
      right = {job_.default_interface};
    return right.empty() ? removal_of(name)
                         : fmt::format("export {}='={}'", name, fmt::join(right, ","));
  }

  // The name of the config's NIC behind this interface; empty: none.
  std::string taken_as(const std::string& folder, const std::string& interface) const {
    std::string pci =
        config::link_name(job_.machine, folder + "/" + interface + "/device").value_or("");
    // virtio has one more device in between.
    if (pci.starts_with("virtio"))
      for (const config::Nic& nic : fabric_.nics)
        if (config::exists(job_.machine, config::pci_folder(nic.pci) + "/" + pci)) pci = nic.pci;
    const auto taken = std::find_if(fabric_.nics.begin(), fabric_.nics.end(), [&](const auto& nic) {
      return !nic.pci.empty() && nic.pci == pci;
    });
    return taken == fabric_.nics.end() ? std::string() : taken->name;
  }

  // A poller for each queue, workers and two NCCL proxy threads for each NIC run at the same time.
  void check_cpus() {
    const UsableCpus cpus = usable_cpus(job_.machine);
    if (cpus.listed == 0) return;
    const auto usable = config::parse_cpu_list(cpus.list);
    std::vector<std::uint32_t> beyond;
    for (const std::uint32_t cpu : fabric_.poller.cpus)
      if (std::find(usable.begin(), usable.end(), cpu) == usable.end()) beyond.push_back(cpu);
    if (!beyond.empty())
      add(Severity::kWarning, "cpus", "poller.cpus",
          fmt::format("names CPU {}, which this process may not use (it may use {}), so no poller "
                      "runs there",
                      fmt::join(beyond, ", "), cpus.list),
          fmt::format("name others in {}, or remove the line", fabric_.path));
    const auto workers =
        static_cast<std::size_t>(std::max<std::int32_t>(fabric_.poller.workers, 0));
    std::size_t busy = 0;
    for (const config::Nic& nic : fabric_.nics) busy += plan::busy_cpus(nic, workers);
    const std::string nics = counted(fabric_.nics.size(), "NIC");
    const std::string what =
        cpus.limited()
            ? fmt::format("time of {}, by the cgroup's limit, for {}", counted(cpus.quota, "CPU"),
                          nics)
            : fmt::format("{} ({}) for {}", counted(cpus.listed, "CPU"), cpus.list, nics);
    // Software NICs are for trials, and a shared poller is meant to share its CPU.
    const bool matters =
        workers != 0 || (fabric_.poller.mode != config::PollerMode::kShared &&
                         std::any_of(fabric_.nics.begin(), fabric_.nics.end(), [](const auto& nic) {
                           return nic.driver == config::NicDriver::kPci;
                         }));
    if (cpus.count() >= busy || !matters)
      add(Severity::kGood, "cpus", "this process", what, "");
    else
      add(Severity::kWarning, "cpus", "this process",
          fmt::format("{}: pollers{} and NCCL's threads need {} and will share CPUs", what,
                      workers == 0 ? "" : ", their workers", busy),
          workers == 0 ? "give the job more CPUs, or write mode = \"shared\" under [poller]"
                       : "give the job more CPUs, or remove workers = " + std::to_string(workers) +
                             " from [poller]");
  }

  const config::Fabric& fabric_;
  const JobEnvironment& job_;
  const tools::NcclVariables variables_;
  std::vector<Check> checks_;
};

}  // namespace

std::string default_interface(const config::Network& network) {
  constexpr std::uint32_t kMainTable = 254;
  const config::Route* best = nullptr;
  // Prefers IPv4, as NCCL does.
  const auto rank = [](const config::Route& route) { return std::pair(route.ipv6, route.metric); };
  for (const config::Route& route : network.routes)
    if (route.table == kMainTable && route.destination.length == 0 &&
        network.find(route.interface) != nullptr && (best == nullptr || rank(route) < rank(*best)))
      best = &route;
  return best == nullptr ? std::string() : network.find(best->interface)->name;
}

std::vector<Check> check_job_environment(const config::Fabric& fabric, const JobEnvironment& job) {
  return Checker(fabric, job).run();
}

}  // namespace ztcp::setup
