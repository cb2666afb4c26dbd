// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Checks an interface that stays with the kernel below ztcp's own TCP, for AF_XDP above all, and
// its ports, the frames of which go past the kernel.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "config/check/checklist.h"
#include "config/file/fields.h"
#include "config/machine/port_set.h"
#include "config/machine/readings.h"
#include "config/machine/receive_queues.h"
#include "config/machine/xdp_mtu.h"
#include "config/nic_interface.h"
#include "core/counted.h"
#include "core/nic_slot.h"
#include "hugepage/xdp_memory.h"

namespace ztcp::config {
namespace {

// "a bond"; empty: frames of a NIC.
std::string_view kind_of(Machine& machine, const std::string& folder) {
  if (read_line(machine, folder + "/bonding/mode")) return "a bond";
  if (read_line(machine, folder + "/bridge/bridge_id")) return "a bridge";
  const auto uevent = machine.read_value(folder + "/uevent");
  if (uevent && uevent->find("DEVTYPE=vlan") != std::string::npos) return "a VLAN";
  return {};
}

// Files of a pinned program (transport/link/xdp/attachment.h). A job takes the program as pinned
// where the first one is, which keeps it on the interface, and then opens the others.
constexpr const char* kPinnedLink = "/link";
constexpr std::array<const char*, 3> kPinnedForJobs{"/sockets", "/program", "/steering"};

bool is_pinned(Machine& machine, const Nic& nic) {
  return exists(machine, xdp_pin_folder(nic.interface) + kPinnedLink);
}
// The first file that a job needs and that is not there; empty: there are all.
std::string missing_file(Machine& machine, const Nic& nic) {
  for (const char* file : kPinnedForJobs)
    if (const std::string path = xdp_pin_folder(nic.interface) + file; !exists(machine, path))
      return path;
  return {};
}
bool is_left_behind(Machine& machine, const Nic& nic) {
  return std::any_of(kPinnedForJobs.begin(), kPinnedForJobs.end(), [&](const char* file) {
    return exists(machine, xdp_pin_folder(nic.interface) + file);
  });
}

}  // namespace

Next check_xdp_interface(Checklist& list, const Nic& nic) {
  const std::string check(name_of(nic.driver));
  const std::string folder = "/sys/class/net/" + nic.interface;
  const auto mtu = read_line(list.machine, folder + "/mtu");
  if (!mtu) {
    list.fault(
        check, nic.name,
        fmt::format("interface = \"{}\" is not an interface of this machine", nic.interface),
        fmt::format("ip -brief address shows them; correct interface in {}", list.fabric.path));
    return Next::kStop;
  }
  if (const std::string_view kind = kind_of(list.machine, folder); !kind.empty()) {
    list.fault(check, nic.name,
               fmt::format("{} is {}: {} works on the NICs below it", nic.interface, kind,
                           nic.driver == NicDriver::kXdp ? "AF_XDP" : check),
               fmt::format("name an interface of a NIC in {}, or write driver = \"socket\"",
                           list.fabric.path));
    return Next::kStop;
  }
  if (const auto master = link_name(list.machine, folder + "/master"))
    if (!kind_of(list.machine, "/sys/class/net/" + *master).empty()) {
      list.fault(check, nic.name,
                 fmt::format("{} belongs to {}, which has the address and receives its frames",
                             nic.interface, *master),
                 fmt::format("name an interface of a NIC in {}, or write driver = \"socket\"",
                             list.fabric.path));
      return Next::kStop;
    }
  const auto facts = list.xdp.find(nic.interface);
  const bool is_in_use = facts != list.xdp.end() && facts->second.is_in_use;
  if (facts != list.xdp.end() && !facts->second.obstacle.empty() && !is_in_use) {
    list.fault(check, nic.name, fmt::format("{} {}", nic.interface, facts->second.obstacle),
               fmt::format("remove it, or name another interface in {}", list.fabric.path));
    return Next::kStop;
  }
  const auto own =
      std::find_if(list.addresses.begin(), list.addresses.end(), [&](const LocalAddress& one) {
        return one.interface == nic.interface && one.prefix.address == nic.address.address;
      });
  // Without a list the machine's addresses are not known.
  if (!list.addresses.empty() && own == list.addresses.end())
    list.fault(check, nic.name,
               fmt::format("{} has no address {}", nic.interface, to_string(nic.address.address)),
               fmt::format("ip address show {} shows its own; correct address in {}", nic.interface,
                           list.fabric.path));
  const auto carried = read_number(list.machine, folder + "/mtu").value_or(0);
  if (carried < nic.mtu_bytes)
    list.fault(
        "mtu", nic.name,
        fmt::format("mtu_bytes = {} in the config, {} has {}", nic.mtu_bytes, nic.interface, *mtu),
        fmt::format("sudo ip link set dev {} mtu {}", nic.interface, nic.mtu_bytes));
  else
    list.good(check, nic.name,
              fmt::format("{}, MTU {}{}{}", nic.interface, *mtu,
                          facts == list.xdp.end() ? "" : ", " + facts->second.mode,
                          is_in_use ? "; a running process of ztcp has its program there" : ""));
  if (const std::uint32_t most = largest_xdp_mtu(list.machine);
      nic.driver == NicDriver::kXdp && nic.mtu_bytes > most)
    list.fault(
        "mtu", nic.name,
        fmt::format("mtu_bytes = {} takes several buffers for a frame, which needs Linux 6.6",
                    nic.mtu_bytes),
        fmt::format("write mtu_bytes = {} or less in {}", most, list.fabric.path));
  return Next::kGoOn;
}

// Each process has an equal part of the queues, and a program that set-up pinned serves all.
Next check_xdp_processes(Checklist& list, const Nic& nic) {
  if (nic.processes == 1) return Next::kGoOn;
  const std::uint32_t queues = receive_queues(list.machine, nic.interface);
  if (queues != 0 && queues < nic.processes)
    list.fault("processes", nic.name,
               fmt::format("{} has {}, and processes = {} share it", nic.interface,
                           counted(queues, "receive queue"), nic.processes),
               fmt::format("sudo ethtool -L {} combined {}; or lower processes in {}, then sudo "
                           "ztcp_setup",
                           nic.interface, nic.processes, list.fabric.path));
  else if (!is_pinned(list.machine, nic))
    list.fault("processes", nic.name,
               fmt::format("processes = {} share {}, which needs an XDP program that set-up pinned",
                           nic.processes, nic.interface),
               "sudo ztcp_setup --transport xdp; or processes = 1");
  else
    list.good("processes", nic.name,
              fmt::format("{} processes share {}, slots 0 to {}: slot N has the queues N, N + {} "
                          "and so on of {}, and port {} + N",
                          nic.processes, nic.interface, nic.processes - 1, nic.processes, queues,
                          list.fabric.messages.listen_port));
  return Next::kGoOn;
}

// A connection of the kernel with such a source port would lose its frames to the program.
Next check_xdp_ports(Checklist& list, const Nic& nic) {
  const PortSet ephemeral = ephemeral_ports(list.machine);
  PortSet ours;
  add_range(ours, nic.first_port, nic.last_port);
  const std::uint32_t first_listening = list.fabric.messages.listen_port;
  const std::uint32_t last_listening = first_listening + nic.processes - 1;
  add_range(ours, first_listening, last_listening);
  const std::string listening = first_listening == last_listening
                                    ? fmt::to_string(first_listening)
                                    : fmt::format("{}-{}", first_listening, last_listening);
  if ((ours & ephemeral).any()) {
    const auto before = read_line(list.machine, kReservedPorts).value_or(std::string());
    list.fault("ports", nic.name,
               fmt::format("the kernel gives ports of {}-{} and {} to other connections, whose "
                           "frames would come to ztcp (net.ipv4.ip_local_port_range)",
                           nic.first_port, nic.last_port, listening),
               fmt::format("sudo sysctl -w net.ipv4.ip_local_reserved_ports={}{}{}-{},{}", before,
                           before.empty() ? "" : ",", nic.first_port, nic.last_port, listening));
  } else {
    list.good("ports", nic.name,
              fmt::format("the kernel leaves {}-{} and {} to ztcp", nic.first_port, nic.last_port,
                          listening));
  }
  return Next::kGoOn;
}

// For the process that runs the check, as for a job with its rights. linux/capability.h.
Next check_xdp_rights(Checklist& list, const Nic& nic) {
  struct Right {
    unsigned bit;
    const char* name;
  };
  constexpr Right kNetAdmin{12, "CAP_NET_ADMIN"};
  constexpr Right kNetRaw{13, "CAP_NET_RAW"};
  constexpr Right kBpf{39, "CAP_BPF"};
  const bool pinned = is_pinned(list.machine, nic);
  if (!pinned && is_left_behind(list.machine, nic)) {
    list.warning("rights", nic.name,
                 fmt::format("{}{} is missing: the XDP program that set-up pinned is off {}, and a "
                             "job attaches its own, with CAP_BPF and CAP_NET_ADMIN",
                             xdp_pin_folder(nic.interface), kPinnedLink, nic.interface),
                 "sudo ztcp_setup --transport xdp pins it again");
    return Next::kGoOn;
  }
  if (pinned) {
    if (const std::string file = missing_file(list.machine, nic); !file.empty()) {
      list.fault("rights", nic.name,
                 file + " is missing, a file of the XDP program that set-up pinned",
                 "sudo ztcp_setup --transport xdp pins it again");
      return Next::kGoOn;
    }
    const std::string sockets = xdp_pin_folder(nic.interface) + kPinnedForJobs.front();
    if (!list.machine.may_access(sockets, R_OK | W_OK)) {
      list.fault("rights", nic.name,
                 fmt::format("user {} may not open {}, the XDP program that set-up pinned",
                             ::geteuid(), sockets),
                 "sudo ztcp_setup --group GROUP, of which the user is a member");
      return Next::kGoOn;
    }
  }
  std::string missing;
  for (const Right& right :
       pinned ? std::vector<Right>{kNetRaw} : std::vector<Right>{kNetAdmin, kNetRaw, kBpf})
    if (!has_capability(list.machine, right.bit))
      missing += (missing.empty() ? "" : ", ") + std::string(right.name);
  if (missing.empty())
    list.good("rights", nic.name,
              pinned ? "this process may use the XDP program that set-up pinned"
                     : "this process may attach an XDP program");
  else
    list.warning("rights", nic.name, fmt::format("user {} lacks {} here", ::geteuid(), missing),
                 pinned ? "give it to the job: a container with --cap-add NET_RAW, or a service "
                          "with AmbientCapabilities=CAP_NET_RAW"
                        : "sudo ztcp_setup --transport xdp pins the program, so that jobs need "
                          "CAP_NET_RAW alone");
  return Next::kGoOn;
}

// For each process of a job: all have the limit of the user's, and the kernel adds them up.
Next check_xdp_memory(Checklist& list, const Nic& nic) {
  const auto limit = locked_memory_limit(list.machine);
  if (!limit) return Next::kGoOn;
  const std::uint32_t all = receive_queues(list.machine, nic.interface);
  const std::uint32_t queues = std::max(1U, NicSlot{0, nic.processes}.queues(all));
  const std::uint32_t lanes = std::clamp(nic.queues, 1U, queues);
  const std::uint64_t needed_kib = hugepage::xdp_memory_bytes(nic.mtu_bytes, queues, lanes) >> 10U;
  const std::string text = fmt::format("{} KiB for {}", needed_kib, counted(queues, "queue"));
  if (has_capability(list.machine, kCapIpcLock))
    list.good("memlock", nic.name, text + "; CAP_IPC_LOCK lifts the limit");
  else if (*limit >> 10U >= needed_kib)
    list.good("memlock", nic.name, text);
  else
    list.fault("memlock", nic.name,
               fmt::format("max locked memory is {} KiB, {} needs {} KiB for {}", *limit >> 10U,
                           nic.interface, needed_kib, counted(queues, "queue")),
               "ulimit -l unlimited; docker run --ulimit memlock=-1; LimitMEMLOCK=infinity");
  return Next::kGoOn;
}

}  // namespace ztcp::config
