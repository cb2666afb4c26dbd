// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/xdp/mode.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <linux/ethtool.h>
#include <linux/genetlink.h>
#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "core/counted.h"
#include "core/fd.h"
#include "core/netlink.h"
#include "hugepage/xdp_memory.h"

namespace ztcp::link::xdp {
namespace {

// linux/netdev.h, newer than the headers of Linux 6.1.
constexpr std::uint8_t kGetDevice = 1;                  // NETDEV_CMD_DEV_GET
constexpr std::uint16_t kInterface = 1;                 // NETDEV_A_DEV_IFINDEX
constexpr std::uint16_t kFeatures = 3;                  // NETDEV_A_DEV_XDP_FEATURES
constexpr std::uint16_t kZeroCopyPieces = 4;            // NETDEV_A_DEV_XDP_ZC_MAX_SEGS
constexpr std::uint64_t kRunsPrograms = 1U | 1U << 1U;  // NETDEV_XDP_ACT_BASIC, _REDIRECT
constexpr std::uint64_t kHasZeroCopy = 1U << 3U;        // NETDEV_XDP_ACT_XSK_ZEROCOPY

// The number that the kernel gave this family of generic netlink.
Result<std::uint16_t> find_family(netlink::Session& kernel, const std::string& name) {
  netlink::NetlinkRequest request(GENL_ID_CTRL, 0, genlmsghdr{CTRL_CMD_GETFAMILY, 1, 0});
  request.put(CTRL_ATTR_FAMILY_NAME, name);
  std::uint16_t id = 0;
  ZTCP_CHECK(kernel.query(request, [&](const netlink::Message& message) {
    id = message.attributes<genlmsghdr>().number<std::uint16_t>(CTRL_ATTR_FAMILY_ID);
  }));
  return id;
}

Result<DriverSupport> ask_kernel(unsigned interface_index) {
  auto kernel = ZTCP_TRY(netlink::Session::open(NETLINK_GENERIC));
  const std::uint16_t family = ZTCP_TRY(find_family(kernel, "netdev"));
  netlink::NetlinkRequest request(family, 0, genlmsghdr{kGetDevice, 1, 0});
  request.put(kInterface, interface_index);
  DriverSupport out;
  ZTCP_CHECK(kernel.query(request, [&](const netlink::Message& message) {
    const auto attributes = message.attributes<genlmsghdr>();
    const auto features = attributes.number<std::uint64_t>(kFeatures);
    out.runs_programs = (features & kRunsPrograms) == kRunsPrograms;
    out.has_zero_copy = (features & kHasZeroCopy) != 0;
    out.zero_copy_pieces = std::max(1U, attributes.number(kZeroCopyPieces));
  }));
  return out;
}

std::string name_of(const Mode& mode) { return mode.driver.empty() ? "the driver" : mode.driver; }

std::string generic_text(const Mode& mode) {
  // veth, for one, takes its feature back while it has too few queues; then the error says more.
  const bool has_reason = mode.native_errno != 0 && mode.native_errno != EOPNOTSUPP;
  if (mode.support && !mode.support->runs_programs && !has_reason)
    return fmt::format("generic mode ({} runs no XDP programs)", name_of(mode));
  if (mode.native_errno == 0) return "generic mode";
  return fmt::format("generic mode (native, with MTU {}: {})", mode.mtu_bytes,
                     std::strerror(mode.native_errno));
}

std::string copy_text(const Mode& mode) {
  if (mode.is_zero_copy.value_or(false)) return "zero copy";
  if (mode.support && !mode.support->has_zero_copy)
    return fmt::format("copy mode ({} has no zero copy)", name_of(mode));
  if (mode.support && mode.support->zero_copy_pieces < hugepage::XdpChunks(mode.mtu_bytes).pieces)
    return fmt::format("copy mode ({} has no zero copy for MTU {}: {} or less)", name_of(mode),
                       mode.mtu_bytes, hugepage::xdp_largest_mtu(mode.support->zero_copy_pieces));
  if (mode.is_zero_copy)
    return fmt::format("copy mode (zero copy: {})", std::strerror(mode.zero_copy_errno));
  return mode.support ? "zero copy" : "zero copy or not: a job's init line tells";
}

}  // namespace

std::optional<DriverSupport> read_driver_support(unsigned interface_index) {
  const auto told = ask_kernel(interface_index);
  return told ? std::optional(*told) : std::nullopt;
}

std::string driver_name(const std::string& interface) {
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(&info);
  const Fd control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!control || ::ioctl(control.get(), SIOCETHTOOL, &request) != 0) return {};
  return std::string(info.driver, ::strnlen(info.driver, sizeof(info.driver)));
}

std::string to_text(const Mode& mode) {
  const std::string queues = counted(mode.queues, "queue");
  if (!mode.is_native && !mode.support)
    return fmt::format(
        "{}; before Linux 6.3 the kernel does not tell whether {} has native mode "
        "and zero copy: a job's init line does",
        queues, name_of(mode));
  const bool is_native = mode.is_native ? *mode.is_native : mode.support->runs_programs;
  if (!is_native)
    return fmt::format("{}, {}, copy mode (generic mode has no zero copy)", queues,
                       generic_text(mode));
  return fmt::format("{}, native mode, {}", queues, copy_text(mode));
}

}  // namespace ztcp::link::xdp
