// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/xdp/interface.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/sockios.h>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "core/fd.h"
#include "core/log.h"
#include "core/netlink_request.h"

namespace ztcp::link::xdp {
namespace {

InterfaceFacts facts_of(const netlink::Message& message) {
  const auto fixed = message.fixed<ifinfomsg>();
  const auto attributes = message.attributes<ifinfomsg>();
  InterfaceFacts out;
  out.index = static_cast<unsigned>(fixed.ifi_index);
  out.name = attributes.text(IFLA_IFNAME);
  out.kind = attributes.nested(IFLA_LINKINFO).text(IFLA_INFO_KIND);
  out.mac = netlink::read_as<MacAddress>(attributes.find(IFLA_ADDRESS).value_or(netlink::Bytes()));
  out.mtu_bytes = attributes.number(IFLA_MTU);
  out.is_up = (fixed.ifi_flags & IFF_UP) != 0;
  out.has_carrier = (fixed.ifi_flags & IFF_LOWER_UP) != 0;
  out.is_ethernet = fixed.ifi_type == ARPHRD_ETHER;
  out.master = attributes.number(IFLA_MASTER);
  const auto xdp = attributes.nested(IFLA_XDP);
  out.program_id = xdp.number(IFLA_XDP_PROG_ID);
  out.has_native_program = xdp.number<std::uint8_t>(IFLA_XDP_ATTACHED) == XDP_ATTACHED_DRV;
  return out;
}

Result<std::optional<InterfaceFacts>> read(netlink::Session& kernel,
                                           netlink::NetlinkRequest request) {
  std::optional<InterfaceFacts> found;
  const Status done =
      kernel.query(request, [&](const netlink::Message& message) { found = facts_of(message); });
  if (done) return found;
  if (done.error().sys_errno == ENODEV) return std::optional<InterfaceFacts>();
  return tl::unexpected(done.error());
}

// Kinds that send frames through other interfaces.
bool is_on_top(std::string_view kind) {
  constexpr std::array<std::string_view, 8> kKinds{"bond",    "team",   "bridge", "vlan",
                                                   "macvlan", "ipvlan", "vxlan",  "openvswitch"};
  return std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end();
}

}  // namespace

Result<std::optional<InterfaceFacts>> read_interface(netlink::Session& kernel,
                                                     const std::string& name) {
  netlink::NetlinkRequest request(RTM_GETLINK, 0, ifinfomsg{});
  request.put(IFLA_IFNAME, name);
  return read(kernel, request);
}

Result<std::optional<InterfaceFacts>> read_interface(netlink::Session& kernel, unsigned index) {
  ifinfomsg fixed{};
  fixed.ifi_index = static_cast<int>(index);
  return read(kernel, netlink::NetlinkRequest(RTM_GETLINK, 0, fixed));
}

std::uint32_t receive_queues(const std::string& name) {
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(&channels);
  const Fd control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!control || ::ioctl(control.get(), SIOCETHTOOL, &request) != 0) return 1;
  return std::max(1U, channels.combined_count + channels.rx_count);
}

Result<std::string> obstacle_on(netlink::Session& kernel, const InterfaceFacts& interface) {
  if (!interface.is_ethernet) return "is no Ethernet interface";
  if (is_on_top(interface.kind))
    return fmt::format("is a {}: ztcp works on the NICs below it", interface.kind);
  if (interface.master == 0) return std::string();
  const auto master = ZTCP_TRY(read_interface(kernel, interface.master));
  if (!master || !is_on_top(master->kind)) return std::string();
  return fmt::format("belongs to the {} {}, which has the address and receives its frames",
                     master->kind, master->name);
}

Result<InterfaceFacts> find_interface(const char* kind, const std::string& name,
                                      std::uint16_t mtu_bytes) {
  const auto refuse = [&](const std::string& why) {
    log::warn("{} {}: {}", kind, name, why);
    return fail(Errc::kBadConfig, "interface");
  };
  netlink::Session kernel = ZTCP_TRY(netlink::Session::open());
  const auto found = ZTCP_TRY(read_interface(kernel, name));
  if (!found) return refuse("no such interface in this network namespace; see ip link");
  if (const std::string why = ZTCP_TRY(obstacle_on(kernel, *found)); !why.empty())
    return refuse("it " + why + "; choose another interface");
  if (found->mtu_bytes < mtu_bytes)
    return refuse(
        fmt::format("its MTU is {}, mtu_bytes = {} in the config; run: ip link set {} "
                    "mtu {}",
                    found->mtu_bytes, mtu_bytes, name, mtu_bytes));
  return *found;
}

}  // namespace ztcp::link::xdp
