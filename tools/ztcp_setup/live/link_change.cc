// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/live/link_change.h"

#include <cerrno>
#include <linux/if_link.h>
#include <net/if.h>

#include "tools/ztcp_setup/host/hex.h"
#include "tools/ztcp_setup/live/item_message.h"
#include "tools/ztcp_setup/live/link_read.h"

namespace ztcp::setup {
namespace {

using netlink::Attribute;
using netlink::Attributes;
using netlink::NetlinkRequest;
using netlink::Session;

Result<unsigned> index_of(const std::string& link) {
  const unsigned index = ::if_nametoindex(link.c_str());
  if (index == 0) return fail_errno("interface");
  return index;
}

// Begins a request for an existing interface.
Result<NetlinkRequest> change_of(const std::string& link) {
  ifinfomsg header{};
  header.ifi_index = static_cast<int>(ZTCP_TRY(index_of(link)));
  return NetlinkRequest(RTM_NEWLINK, 0, header);
}

std::string bytes_of_mac(const std::string& text) {
  std::string digits = text;
  std::erase(digits, ':');
  return from_hex(digits);
}

// A child's description. A macvlan also reports a counter, and refuses it in requests.
void put_info(NetlinkRequest& request, const InterfaceState& child) {
  const std::string info = from_hex(child.info);
  if (info.empty()) return;
  if (child.kind != "macvlan" && child.kind != "macvtap") {
    request.put(IFLA_INFO_DATA | NLA_F_NESTED, bytes_of(info));
    return;
  }
  request.put_nested(IFLA_INFO_DATA | NLA_F_NESTED, [&] {
    Attributes(bytes_of(info)).for_each([&](const Attribute& one) {
      if (one.type == IFLA_MACVLAN_MODE || one.type == IFLA_MACVLAN_FLAGS)
        request.put(one.flagged_type, one.payload);
    });
  });
}

}  // namespace

Status set_link_up(Session& kernel, const std::string& link, bool up) {
  ifinfomsg header{};
  header.ifi_index = static_cast<int>(ZTCP_TRY(index_of(link)));
  header.ifi_change = IFF_UP;
  header.ifi_flags = up ? IFF_UP : 0;
  return kernel.carry_out(NetlinkRequest(RTM_NEWLINK, 0, header));
}

Status rename_link(Session& kernel, const std::string& from, const std::string& to) {
  NetlinkRequest request = ZTCP_TRY(change_of(from));
  request.put(IFLA_IFNAME, to);
  return kernel.carry_out(request);
}

Status set_link(Session& kernel, const std::string& link, const InterfaceState& wanted) {
  const auto now = ZTCP_TRY(read_link(kernel, link));
  if (!now) return fail(Errc::kNoDevice, "interface", ENODEV);
  NetlinkRequest request = ZTCP_TRY(change_of(link));
  // Changes only differences: not every driver can change everything.
  if (now->mac != wanted.mac) request.put(IFLA_ADDRESS, bytes_of(bytes_of_mac(wanted.mac)));
  if (now->mtu_bytes != wanted.mtu_bytes) request.put(IFLA_MTU, wanted.mtu_bytes);
  if (now->queue_length != wanted.queue_length) request.put(IFLA_TXQLEN, wanted.queue_length);
  if (now->alias != wanted.alias) request.put(IFLA_IFALIAS, wanted.alias);
  return kernel.carry_out(request);
}

Status set_link_master(Session& kernel, const std::string& link, const std::string& master) {
  NetlinkRequest request = ZTCP_TRY(change_of(link));
  request.put(IFLA_MASTER, ZTCP_TRY(index_of(master)));
  return kernel.carry_out(request);
}

Status add_child_link(Session& kernel, const std::string& parent, const InterfaceState& child) {
  NetlinkRequest request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, ifinfomsg{});
  request.put(IFLA_LINK, ZTCP_TRY(index_of(parent)));
  request.put(IFLA_IFNAME, child.name);
  request.put_nested(IFLA_LINKINFO, [&] {
    request.put(IFLA_INFO_KIND, child.kind);
    put_info(request, child);
  });
  return kernel.carry_out(request);
}

Status add_link_item(Session& kernel, const std::string& link, const NetworkItem& item) {
  const unsigned index = ZTCP_TRY(index_of(link));
  const Status status = kernel.carry_out(ZTCP_TRY(request_for(item, index)));
  if (!status && status.error().sys_errno == EEXIST) return {};
  return status;
}

}  // namespace ztcp::setup
