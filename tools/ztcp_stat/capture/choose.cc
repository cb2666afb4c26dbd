// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/capture/choose.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ztcp::capture {

std::string obstacle(const config::Fabric& fabric, const std::string& device) {
  if (device.empty()) return {};
  std::vector<std::string> names;
  for (const config::Nic& nic : fabric.nics) {
    names.push_back(nic.name);
    if (nic.name != device && config::device_name(nic) != device) continue;
    switch (nic.driver) {
      case config::NicDriver::kPci:
      case config::NicDriver::kMemif:
      case config::NicDriver::kTap:
      case config::NicDriver::kXdp:
      case config::NicDriver::kMlx5:
        return {};
      case config::NicDriver::kSocket:
        return fmt::format(
            "{0} uses the kernel's TCP on {1}, which the kernel's tools show: tcpdump -i {1} 'tcp "
            "portrange {2}-{3}', and ss -tin '( sport >= :{2} and sport <= :{3} ) or ( dport >= "
            ":{2} and dport <= :{3} )'",
            device, nic.interface, nic.first_port, nic.last_port);
      case config::NicDriver::kVerbs:
        return fmt::format(
            "{0} is RDMA: its packets pass no software of this host; where libpcap supports the "
            "adapter: tcpdump -i {1}",
            device, nic.device);
    }
  }
  return fmt::format("{} has no NIC \"{}\"; it has {}", fabric.path, device,
                     fmt::join(names, ", "));
}

tl::expected<Choice, std::string> choose(const CaptureOptions& options, const Jobs& jobs,
                                         const std::string& run_dir) {
  std::vector<Choice> fitting;
  for (const Job& job : jobs.found) {
    if (options.pid != 0 && job.pid != options.pid) continue;
    for (const std::string& device : job.devices)
      if (options.device.empty() || device == options.device) fitting.push_back({job, device});
  }
  if (fitting.size() == 1) return fitting.front();
  if (fitting.size() > 1) {
    std::string list;
    for (const Choice& choice : fitting)
      list +=
          fmt::format("{}{} of {}", list.empty() ? "" : ", ", choice.device, to_string(choice.job));
    return tl::unexpected(fmt::format("choose one by --device and --pid: {}", list));
  }
  std::string wanted = options.device.empty() ? "a NIC of its own" : options.device;
  std::string text = options.pid == 0
                         ? fmt::format("no process drives {} now", wanted)
                         : fmt::format("process {} does not drive {} now", options.pid, wanted);
  text += fmt::format(" (by the sockets in {}; a process has one once it has connected)", run_dir);
  for (const std::string& note : jobs.passed_over) text += "; " + note;
  return tl::unexpected(text);
}

}  // namespace ztcp::capture
