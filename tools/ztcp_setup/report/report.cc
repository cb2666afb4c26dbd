// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/report/report.h"

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "core/counted.h"
#include "core/shell_word.h"
#include "hugepage/budget.h"
#include "tools/ztcp_setup/plan/iommu.h"
#include "tools/ztcp_setup/report/without_secrets.h"

namespace ztcp::setup {
namespace {

using config::Severity;

const std::string& name_of(const config::HostNic& nic) {
  return nic.rdma ? nic.rdma->device : nic.pci;
}

// Columns as wide as their widest cell.
class Table {
 public:
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  std::string text() const {
    std::vector<std::size_t> widths;
    for (const auto& row : rows_) {
      widths.resize(std::max(widths.size(), row.size()));
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    std::string out;
    for (const auto& row : rows_) {
      std::string line = " ";
      for (std::size_t i = 0; i < row.size(); ++i)
        line += fmt::format(" {:<{}} ", row[i], widths[i]);
      out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return out;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string or_dash(std::string text) { return text.empty() ? "-" : std::move(text); }
std::string number_or_dash(std::int64_t number, bool known) {
  return known ? fmt::format("{}", number) : "-";
}

std::string rdma_pairs_text(const Plan& plan) {
  Table table;
  table.add({"device", "GPU", "model", "NUMA", "RDMA device", "link", "interface", "GID", "address",
             "MTU", "Mb/s", "why this NIC"});
  for (const config::Pair& pair : plan.pairs) {
    const config::Gpu gpu = pair.gpu ? plan.topology.gpus[*pair.gpu] : config::Gpu{};
    const config::HostNic& found = plan.topology.nics[pair.nic];
    const config::Nic& nic = plan.fabric_nic(pair);
    const std::uint32_t mbps = nic.speed_mbps != 0 ? nic.speed_mbps : found.speed_mbps;
    table.add({nic.name, or_dash(gpu.pci), or_dash(gpu.model),
               number_or_dash(nic.numa_node, nic.numa_node >= 0),
               fmt::format("{} port {}", nic.device, nic.device_port), found.rdma->network(),
               or_dash(found.interface), found.gid, to_string(nic.address),
               number_or_dash(found.mtu_bytes, found.mtu_bytes > 0), number_or_dash(mbps, mbps > 0),
               pair.reason});
  }
  return table.text();
}

// The NIC of each GPU, with the reason.
std::string pairs_text(const Plan& plan) {
  if (plan.verbs) return rdma_pairs_text(plan);
  Table table;
  table.add({"device", "GPU", "model", "NUMA", "NIC", "interface", "driver", "address", "VLAN",
             "MTU", "Mb/s", "why this NIC"});
  for (const config::Pair& pair : plan.pairs) {
    const config::Gpu gpu = pair.gpu ? plan.topology.gpus[*pair.gpu] : config::Gpu{};
    const config::HostNic& found = plan.topology.nics[pair.nic];
    const config::Nic& nic = plan.fabric_nic(pair);
    const bool addressed = nic.address != IpPrefix();
    // Kernel interfaces keep their own settings.
    const std::uint32_t mtu_bytes = plan.sockets ? found.mtu_bytes : nic.mtu_bytes;
    const std::uint32_t mbps =
        plan.sockets && nic.speed_mbps == 0 ? found.speed_mbps : nic.speed_mbps;
    table.add({nic.name, or_dash(gpu.pci), or_dash(gpu.model),
               number_or_dash(nic.numa_node, nic.numa_node >= 0), found.pci,
               or_dash(plan.sockets ? nic.interface : found.interface), or_dash(found.driver),
               addressed ? config::address_text(nic.address) : "-",
               number_or_dash(nic.vlan_id, nic.vlan_id > 0),
               number_or_dash(mtu_bytes, mtu_bytes > 0), number_or_dash(mbps, mbps > 0),
               pair.reason});
  }
  return table.text();
}

// All NICs on PCI, if there is no pairing.
std::string inventory_text(const config::Topology& topology) {
  Table table;
  for (const config::Gpu& gpu : topology.gpus) table.add({"GPU", gpu.pci, or_dash(gpu.model), ""});
  for (const config::HostNic& nic : topology.nics)
    table.add({nic.rdma ? "RDMA" : "NIC", name_of(nic), or_dash(nic.interface),
               nic.unfit.empty() ? "free" : "not for ztcp: " + nic.unfit});
  return table.text();
}

std::string left_alone_text(const Plan& plan) {
  std::string out;
  for (const config::HostNic& nic : plan.topology.nics)
    if (!nic.unfit.empty())
      out += fmt::format("  {} {} is {}: it {}\n", name_of(nic), or_dash(nic.interface),
                         plan.takes_nics() ? "left alone" : "not used", nic.unfit);
  return out;
}

// "mlx5_0 port 1 (Ethernet, 100000 Mb/s, eth1)": active RDMA ports that a plan with another
// transport leaves unused; empty: none.
std::string idle_rdma_text(const Plan& plan) {
  std::string out;
  if (plan.verbs) return out;
  for (const config::HostNic& nic : plan.topology.rdma)
    if (nic.rdma->is_active() && nic.rdma->kind != config::RdmaKind::kOther)
      out +=
          fmt::format("{}{} port {} ({}, {} Mb/s, {})", out.empty() ? "" : ", ", nic.rdma->device,
                      nic.rdma->port, nic.rdma->network(),
                      number_or_dash(nic.speed_mbps, nic.speed_mbps > 0), or_dash(nic.interface));
  return out;
}

const char* word_for(Severity severity) {
  switch (severity) {
    case Severity::kGood:
      return "ok";
    case Severity::kWarning:
      return "warning";
    case Severity::kFault:
      break;
  }
  return "FAULT";
}

std::string notes_text(const Plan& plan) {
  std::string out;
  for (const config::Check& note : plan.notes) {
    out += fmt::format("  {}: {}: {}\n", word_for(note.severity), note.problem.where,
                       note.problem.what);
    if (!note.problem.mend.empty()) out += fmt::format("    mend: {}\n", note.problem.mend);
  }
  return out;
}

// Lines other than comments and blank ones: the config explains each key in comments.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && line.front() != '#') lines.push_back(line);
  return lines;
}

// Removed and added lines; lines of the longest common subsequence are left out.
std::string difference(const std::string& before, const std::string& after) {
  const auto a = lines_of(before);
  const auto b = lines_of(after);
  std::vector<std::vector<std::size_t>> common(a.size() + 1,
                                               std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = a.size(); i-- > 0;)
    for (std::size_t j = b.size(); j-- > 0;)
      common[i][j] =
          a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
  std::string out;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      ++i, ++j;
    } else if (i < a.size() && (j == b.size() || common[i + 1][j] >= common[i][j + 1])) {
      out += fmt::format("        - {}\n", without_secrets(a[i++]));
    } else {
      out += fmt::format("        + {}\n", without_secrets(b[j++]));
    }
  }
  return out;
}

std::string changes_text(const std::vector<Preview>& changes) {
  std::string out;
  for (const Preview& change : changes) {
    out += "  " + change.what;
    if (!change.is_text && !change.want.empty())
      out += fmt::format(": {} -> {}", change.have, change.want);
    out += fmt::format("\n      {}\n", change.command);
    if (change.is_text) out += difference(change.have, change.want);
  }
  return out;
}

std::string gib(std::uint64_t mib) {
  return mib % 1024 == 0 ? fmt::format("{} GiB", mib / 1024) : fmt::format("{} MiB", mib);
}

}  // namespace

ExitCode exit_code(const Plan& plan) {
  if (!plan.fabric) return kExitUnusable;
  if (plan.has_faults()) return kExitFaults;
  return plan.notes.empty() ? kExitGood : kExitWarnings;
}

ExitCode exit_code(const CheckReport& report) {
  if (!report.load_problems.empty()) return kExitUnusable;
  ExitCode code = kExitGood;
  for (const config::Check& check : report.checks) {
    if (check.severity == Severity::kFault) return kExitFaults;
    if (check.severity == Severity::kWarning) code = kExitWarnings;
  }
  return code;
}

std::string to_text(const config::Problem& problem) {
  std::string out = fmt::format("ztcp_setup: {}: {}\n", problem.where, problem.what);
  if (!problem.mend.empty()) out += fmt::format("  mend: {}\n", problem.mend);
  return out;
}

std::string decisions_text(const Plan& plan) {
  const config::Fabric& fabric = *plan.fabric;
  const HostClassFacts facts = facts_of(fabric.host.host_class);
  std::string out = pairs_text(plan) + left_alone_text(plan);
  out += fmt::format("\nHost class {}: {}.\n", facts.letter, facts.meaning);
  if (plan.sockets && plan.sockets->is_past_kernel())
    out += fmt::format(
        "Transport: ztcp's own TCP over {} for the whole host ({}); no NIC is taken, and no driver "
        "changes.\n",
        title_of(plan.sockets->over), plan.sockets->why);
  else if (plan.sockets)
    out += fmt::format(
        "Transport: kernel sockets for the whole host ({}); no NIC is taken.\nFaster: {}.\n",
        plan.sockets->why, plan.sockets->faster_way);
  else if (plan.verbs)
    out += fmt::format(
        "Transport: RDMA devices for the whole host ({}); no NIC is taken.\nGPUDirect RDMA: {}.\n",
        plan.verbs->why, config::to_string(plan.verbs->gpu_direct));
  if (plan.is_over_dpdk())
    out += fmt::format("Hugepages: {} = {} x {} + {}, as pages of {}.\n", gib(plan.hugepage_mib()),
                       counted(plan.pairs.size(), plan.pairs.front().gpu ? "GPU" : "NIC"),
                       gib(fabric.hugepages.per_process_mib), gib(plan.spare_mib),
                       hugepage::page_name(fabric.hugepages.page_kib));
  const std::uint32_t queues = fabric.nics.front().queues;
  if (plan.is_over_dpdk() && queues != 1)
    out += fmt::format("Queues of a NIC: {}, each with a poller.\n",
                       queues == config::kAutoQueues ? "as its speed and the CPUs allow (auto)"
                                                     : fmt::format("{}", queues));
  if (const std::string idle = idle_rdma_text(plan); !idle.empty())
    out += fmt::format(
        "Unused RDMA devices: {}; sudo ztcp_setup --transport "
        "verbs uses them.\n",
        idle);
  if (!plan.speed_origin.empty()) out += fmt::format("Speed: {}.\n", plan.speed_origin);
  return out;
}

std::string faults_text(const Plan& plan, bool reverted) {
  if (!plan.fabric) return inventory_text(plan.topology) + notes_text(plan);
  return decisions_text(plan) + "\nFaults to correct first:\n" + notes_text(plan) +
         (reverted ? "\nsetup failed; the changes of the previous run were reverted, nothing else "
                     "was changed\n"
                   : "\nsetup failed; nothing was changed\n");
}

std::string to_text(const Plan& plan, const std::vector<Preview>& changes) {
  if (!plan.fabric) return inventory_text(plan.topology) + notes_text(plan);
  std::string out = decisions_text(plan);
  if (changes.empty())
    out += "\nSet-up would change nothing.\n";
  else
    out += "\nSet-up would change:\n" + changes_text(changes);
  if (!plan.notes.empty())
    out += (plan.has_faults() ? "\nFaults to correct first:\n" : "\nNotes:\n") + notes_text(plan);
  return out + "\nThis was a dry run: nothing was changed.\n";
}

std::string to_text(const CheckReport& report) {
  std::string out;
  for (const config::Problem& problem : report.load_problems) out += to_text(problem);
  if (!report.load_problems.empty()) return out;
  out = fmt::format("{}\n", report.config_path);
  std::size_t faults = 0;
  std::size_t warnings = 0;
  for (const config::Check& check : report.checks) {
    faults += check.severity == Severity::kFault ? 1U : 0U;
    warnings += check.severity == Severity::kWarning ? 1U : 0U;
    out += fmt::format("  {:<8} {:<10} {}: {}\n", word_for(check.severity), check.name,
                       check.problem.where, check.problem.what);
    if (!check.problem.mend.empty())
      out += fmt::format("  {:<8} {:<10} mend: {}\n", "", "", check.problem.mend);
  }
  return out + fmt::format("{}, {}, {}\n", counted(report.checks.size(), "check"),
                           counted(warnings, "warning"), counted(faults, "fault"));
}

void say(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

ExitCode refuse(const config::Problem& problem, bool json, ExitCode code) {
  if (json) say(to_json(problem, code));
  std::fputs(to_text(problem).c_str(), stderr);
  return code;
}

std::vector<std::string> next_commands(const config::Fabric& local, LocalTopology topology) {
  std::vector<std::string> commands;
  if (topology == LocalTopology::kSwitch)
    commands.push_back(fmt::format("ztcp_switch --config {} &", shell_word(local.path)));
  commands.push_back(
      fmt::format("ztcp_perf --plugin FOLDER/libnccl-net.so --config {} --ranks {} --op all_reduce "
                  "--check",
                  shell_word(local.path), local.nics.size()));
  return commands;
}

std::string to_text(const config::Fabric& local, LocalTopology topology) {
  const config::Nic& first = local.nics.front();
  const std::string queues =
      first.queues == 1 ? "" : fmt::format(" with {} lanes each", first.queues);
  std::string out = fmt::format(
      "{}{}, MTU {}, {} to {}, in {}\n", counted(local.nics.size(), "NIC"), queues, first.mtu_bytes,
      to_string(first.address), to_string(local.nics.back().address), local.path);
  out += "setup successfully\n\nNext:\n";
  for (const std::string& command : next_commands(local, topology)) out += "  " + command + "\n";
  return out;
}

}  // namespace ztcp::setup
