// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// XDP programs of this machine.
#include <cerrno>

#include <fmt/format.h>

#include "config/nic_interface.h"
#include "tools/ztcp_setup/live/live_host.h"
#include "transport/link/xdp/attachment.h"
#include "transport/link/xdp/interface.h"
#include "transport/link/xdp/mode.h"

namespace ztcp::setup {
namespace {

namespace xdp = link::xdp;

Result<xdp::InterfaceFacts> facts_of(netlink::Session& kernel, const std::string& interface) {
  const auto found = ZTCP_TRY(xdp::read_interface(kernel, interface));
  if (!found) return fail(Errc::kNoDevice, "ip link show", ENODEV);
  return *found;
}

}  // namespace

std::optional<XdpSteering> LiveHost::xdp_program(const std::string& folder) {
  const auto pinned = xdp::read_pinned(at(folder));
  if (!pinned) return std::nullopt;
  const std::string interface = folder.substr(folder.rfind('/') + 1);
  const auto kernel = netlink();
  if (!kernel) return std::nullopt;
  const auto facts = facts_of(**kernel, interface);
  if (!facts || facts->program_id != pinned->program_id) return std::nullopt;
  const xdp::Steering& steering = pinned->steering;
  return XdpSteering{interface,           steering.address,   steering.listen_port,
                     steering.first_port, steering.last_port, steering.processes};
}

std::string LiveHost::xdp_obstacle(const std::string& interface) {
  const auto kernel = netlink();
  const auto facts = kernel ? facts_of(**kernel, interface)
                            : Result<xdp::InterfaceFacts>(tl::unexpected(kernel.error()));
  if (!facts) return "is not an interface of this machine";
  if (const auto why = xdp::obstacle_on(**kernel, *facts); why && !why->empty()) return *why;
  const auto ours = xdp::read_pinned(at(config::xdp_pin_folder(interface)));
  if (facts->program_id == 0 || (ours && ours->program_id == facts->program_id)) return {};
  return fmt::format("has the XDP program {} already", xdp::describe_other(facts->program_id));
}

bool LiveHost::xdp_is_in_use(const std::string& interface) {
  const auto kernel = netlink();
  if (!kernel) return false;
  const auto facts = facts_of(**kernel, interface);
  if (!facts || facts->program_id == 0) return false;
  const auto pinned = xdp::read_pinned(at(config::xdp_pin_folder(interface)));
  return xdp::is_program_of_ztcp(facts->program_id) &&
         (!pinned || pinned->program_id != facts->program_id);
}

std::string LiveHost::xdp_mode(const std::string& interface, std::uint16_t mtu_bytes) {
  xdp::Mode mode{.queues = xdp::receive_queues(interface),
                 .driver = xdp::driver_name(interface),
                 .mtu_bytes = mtu_bytes};
  const auto kernel = netlink();
  if (!kernel) return xdp::to_text(mode);
  if (const auto facts = facts_of(**kernel, interface); facts) {
    mode.support = xdp::read_driver_support(facts->index);
    if (facts->program_id != 0) mode.is_native = facts->has_native_program;
  }
  return xdp::to_text(mode);
}

Status LiveHost::attach_xdp(const std::string& folder, const XdpSteering& wanted) {
  netlink::Session* const kernel = ZTCP_TRY(netlink());
  const auto facts = ZTCP_TRY(facts_of(*kernel, wanted.interface));
  return xdp::attach_and_pin(
      facts,
      {wanted.address, wanted.listen_port, wanted.first_port, wanted.last_port, wanted.processes},
      at(folder));
}

Status LiveHost::detach_xdp(const std::string& folder) { return xdp::remove_pinned(at(folder)); }

}  // namespace ztcp::setup
