// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Checks an RDMA device's network: the GID that connections use, and the size of packets.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "config/check/checklist.h"
#include "config/machine/rdma.h"
#include "config/machine/readings.h"
#include "core/shell_word.h"

namespace ztcp::config {
namespace {

constexpr const char* kGid = "rdma_gid";

// As a word of a command.
std::string interface_word(const RdmaPort& port) {
  return port.interface.empty() ? "IFNAME" : shell_word(port.interface);
}

std::string words_for(const GidEntry& gid) {
  return fmt::format("GID {} {}", gid.index, describe(gid));
}

// The GID that the transport uses; null: none.
const GidEntry* gid_of(const RdmaPort& port, const Nic& nic) {
  const int wanted = nic.gid_index >= 0
                         ? nic.gid_index
                         : choose_gid(port.gids, port.is_infiniband, {.near = nic.address})
                               .value_or(GidEntry{.index = -1})
                               .index;
  const auto found = std::find_if(port.gids.begin(), port.gids.end(),
                                  [&](const GidEntry& one) { return one.index == wanted; });
  return found == port.gids.end() ? nullptr : &*found;
}

// A GID with an address in the network of the NIC's address; null: none.
const GidEntry* gid_in_network(const RdmaPort& port, const Nic& nic) {
  const auto found = std::find_if(port.gids.begin(), port.gids.end(), [&](const GidEntry& one) {
    return one.type == GidType::kRoceV2 && nic.address.contains(address_of(one.gid));
  });
  return found == port.gids.end() ? nullptr : &*found;
}

bool has_address_of(const Checklist& list, const Nic& nic, const std::string& interface) {
  return std::any_of(list.addresses.begin(), list.addresses.end(), [&](const LocalAddress& one) {
    return one.interface == interface && one.prefix.address == nic.address.address;
  });
}

bool is_on_interface(const Checklist& list, const IpAddress& address,
                     const std::string& interface) {
  return list.addresses.empty() ||
         std::any_of(list.addresses.begin(), list.addresses.end(), [&](const LocalAddress& one) {
           return one.interface == interface && one.prefix.address == address;
         });
}

// With its prefix length: without it no peer of the subnet could be reached.
std::string with_length(const IpAddress& address, const Nic& nic) {
  return nic.address.contains(address) ? to_string(IpPrefix{address, nic.address.length})
                                       : to_string(address) + "/LENGTH";
}

// A problem with an existing GID; empty: none.
Problem oddity_of(const Checklist& list, const RdmaPort& port, const Nic& nic,
                  const GidEntry& gid) {
  const IpAddress address = address_of(gid.gid);
  const std::string who = words_for(gid);
  const GidEntry* const better = gid_in_network(port, nic);
  const std::string choose =
      better == nullptr || better == &gid
          ? std::string()
          : fmt::format("write gid_index = {} into {}", better->index, list.fabric.path);
  // Happens if the entry's interface is in another network namespace.
  if (gid.type == GidType::kUnknown)
    return {"", who + ": the kernel hides its type here, as for another container",
            fmt::format("remove gid_index from {}, and one is chosen", list.fabric.path)};
  if (gid.type == GidType::kRoceV1)
    return {"", who + " is RoCE v1: no router forwards it, and peers must use it, too",
            choose.empty()
                ? fmt::format("remove gid_index from {}, if it has one", list.fabric.path)
                : choose};
  if (address.is_link_local())
    return {"",
            who +
                " is link-local: it reaches only peers that use link-local addresses on the "
                "same link",
            choose.empty()
                ? fmt::format("sudo ip address add ADDRESS/LENGTH dev {}", interface_word(port))
                : choose};
  if (!is_on_interface(list, address, port.interface))
    return {"", fmt::format("{} is no longer an address of {}", who, port.interface),
            fmt::format("sudo ip address add {} dev {}", with_length(address, nic),
                        interface_word(port))};
  // The interface has several networks, and the config's address is in another one.
  if (has_address_of(list, nic, port.interface) && address.is_v4() == nic.address.address.is_v4() &&
      !nic.address.contains(address))
    return {
        "",
        fmt::format("{} is in another subnet than address = \"{}\"", who, to_string(nic.address)),
        choose.empty() ? fmt::format("correct address in {}", list.fabric.path) : choose};
  return {};
}

}  // namespace

Next check_rdma_gid(Checklist& list, const Nic& nic) {
  const RdmaPort& port = list.rdma_port(nic);
  if (port.kind == RdmaKind::kIwarp) return Next::kGoOn;  // Its address is checked instead.
  const GidEntry* const gid = gid_of(port, nic);
  if (gid == nullptr) {
    if (nic.gid_index >= 0)
      list.warning(kGid, nic.name,
                   fmt::format("gid_index = {} in the config, but port {} of {} has no such GID "
                               "now",
                               nic.gid_index, port.port, port.device),
                   fmt::format("remove gid_index from {}, and one is chosen; rdma link and "
                               "show_gids list them",
                               list.fabric.path));
    else
      list.warning(kGid, nic.name,
                   fmt::format("port {} of {} has no GID that can be used", port.port, port.device),
                   fmt::format("sudo ip address add ADDRESS/LENGTH dev {}", interface_word(port)));
    return Next::kStop;
  }
  if (!port.is_infiniband) {
    if (Problem odd = oddity_of(list, port, nic, *gid); !odd.what.empty()) {
      list.warning(kGid, nic.name, std::move(odd.what), std::move(odd.mend));
      return Next::kGoOn;
    }
  }
  list.good(kGid, nic.name,
            fmt::format("{}, {}", words_for(*gid),
                        nic.gid_index >= 0 ? "by gid_index" : "chosen by itself"));
  return Next::kGoOn;
}

// Only a configured index can be missing: a port always has the first one.
Next check_rdma_pkey(Checklist& list, const Nic& nic) {
  if (nic.pkey_index < 0) return Next::kGoOn;
  const std::string key =
      read_line(list.machine, fmt::format("{}/{}/ports/{}/pkeys/{}", kRdmaDevices, nic.device,
                                          nic.device_port, nic.pkey_index))
          .value_or("0x0000");
  if (key != "0x0000") {
    list.good("rdma_pkey", nic.name, fmt::format("partition key {} is {}", nic.pkey_index, key));
    return Next::kGoOn;
  }
  list.warning(
      "rdma_pkey", nic.name,
      fmt::format("pkey_index = {} in the config, but port {} of {} has no such partition "
                  "key",
                  nic.pkey_index, nic.device_port, nic.device),
      fmt::format("correct pkey_index in {}; grep . {}/{}/ports/{}/pkeys/* lists them, and "
                  "the subnet manager gives them",
                  list.fabric.path, kRdmaDevices, nic.device, nic.device_port));
  return Next::kGoOn;
}

// Compares the interface's MTU, from which the kernel derives RoCE's, with that of other NICs and
// of interfaces below: no host knows the network's MTU, but a smaller one is seldom intended.
Next check_rdma_mtu(Checklist& list, const Nic& nic) {
  const RdmaPort& port = list.rdma_port(nic);
  const auto mtu_of = [&](const std::string& interface) {
    return static_cast<std::uint32_t>(std::max<std::int64_t>(
        read_number(list.machine, "/sys/class/net/" + interface + "/mtu").value_or(0), 0));
  };
  const std::uint32_t own = port.interface.empty() ? 0 : mtu_of(port.interface);
  if (port.is_infiniband || port.kind == RdmaKind::kIwarp || own == 0) return Next::kGoOn;
  std::uint32_t larger = own;
  std::string whose;
  const auto compare = [&](const std::string& interface) {
    const std::uint32_t mtu = interface.empty() ? 0 : mtu_of(interface);
    if (mtu <= larger) return;
    larger = mtu;
    whose = interface;
  };
  for (const Nic& other : list.fabric.nics)
    if (other.driver == NicDriver::kVerbs) compare(list.rdma_port(other).interface);
  for (const std::string& entry : list.machine.list("/sys/class/net/" + port.interface))
    if (entry.starts_with("lower_")) compare(entry.substr(6));
  const std::uint32_t payload = roce_payload_bytes(own);
  const std::string text =
      fmt::format("{} has an MTU of {}, so that a packet of RoCE carries {} bytes", port.interface,
                  own, payload);
  if (roce_payload_bytes(larger) > payload)
    list.warning(
        "rdma_mtu", nic.name,
        fmt::format("{}; {} has {}, for {}", text, whose, larger, roce_payload_bytes(larger)),
        fmt::format("sudo ip link set dev {} mtu {}, where the network carries it",
                    interface_word(port), larger));
  else
    list.good("rdma_mtu", nic.name,
              payload == kLargestRocePayload
                  ? text
                  : fmt::format("{}; it would carry {} with an MTU of {} or more, if the network "
                                "supports that, which no host can tell",
                                text, kLargestRocePayload, kMtuForLargestPayload));
  return Next::kGoOn;
}

void check_rdma_speeds(Checklist& list) {
  std::vector<std::string> told;
  std::uint32_t slowest = 0;
  bool equal = true;
  for (const Nic& nic : list.fabric.nics) {
    if (nic.driver != NicDriver::kVerbs) continue;
    const std::uint32_t mbps =
        nic.speed_mbps != 0 ? nic.speed_mbps : list.rdma_port(nic).speed_mbps;
    if (mbps == 0) continue;  // A missing device has been reported.
    equal = equal && (slowest == 0 || mbps == slowest);
    slowest = slowest == 0 ? mbps : std::min(slowest, mbps);
    told.push_back(fmt::format("{} {}", nic.name, mbps));
  }
  if (!equal)
    list.warning(
        "speed", list.fabric.path,
        fmt::format("NCCL is told unequal speeds of RDMA devices ({} Mb/s): it prefers the "
                    "fastest to the nearest, for every GPU",
                    fmt::join(told, ", ")),
        fmt::format("sudo ztcp_setup --speed {} sets the slowest one's speed for all; --keep "
                    "leaves slow ones out",
                    slowest));
}

}  // namespace ztcp::config
