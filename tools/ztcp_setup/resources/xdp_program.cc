// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/xdp_program.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "config/machine/tcp_sockets.h"
#include "config/nic_interface.h"
#include "tools/ztcp_setup/host/trust.h"

namespace ztcp::setup::resource {
namespace {

// The files that a job opens.
constexpr std::array<const char*, 3> kFiles{"/sockets", "/program", "/steering"};

std::string text_of(const XdpSteering& steering) {
  const std::string more = steering.processes == 1
                               ? std::string()
                               : fmt::format("-{}", steering.listen_port + steering.processes - 1);
  return fmt::format("TCP to {} port {}{} and {}-{} past the kernel", to_string(steering.address),
                     steering.listen_port, more, steering.first_port, steering.last_port);
}

// A socket of the kernel whose frames the program would take.
std::optional<config::TcpSocket> socket_in_use(Host& host, const XdpSteering& steering) {
  // Connections that are over need no frames: include/net/tcp_states.h.
  constexpr std::array<unsigned, 2> kOver{6, 7};  // TIME_WAIT, CLOSE
  for (const config::TcpSocket& socket : config::tcp_sockets(host)) {
    const bool is_ours = (socket.port >= steering.listen_port &&
                          socket.port < steering.listen_port + steering.processes) ||
                         (socket.port >= steering.first_port && socket.port <= steering.last_port);
    if (is_ours && std::find(kOver.begin(), kOver.end(), socket.state) == kOver.end() &&
        config::receives_at(socket, steering.address))
      return socket;
  }
  return std::nullopt;
}

}  // namespace

std::string XdpProgram::folder() const { return config::xdp_pin_folder(interface); }

XdpSteering XdpProgram::steering() const {
  XdpSteering out;
  out.interface = interface;
  if (const auto own = parse_ip(address)) out.address = *own;
  out.listen_port = static_cast<std::uint16_t>(listen_port);
  out.first_port = static_cast<std::uint16_t>(first_port);
  out.last_port = static_cast<std::uint16_t>(last_port);
  out.processes = static_cast<std::uint16_t>(processes.value_or(1));
  return out;
}

void XdpProgram::check(Host& host, const Others&, config::Problems& problems) const {
  check_names(host, interface, user, group, problems);
  const XdpSteering steered = steering();
  if (const auto taken = socket_in_use(host, steered))
    problems.push_back(
        {interface,
         fmt::format("port {} of {} is one of ztcp's and in use by another program, whose frames "
                     "would come to ztcp{}",
                     taken->port, address,
                     config::may_be_ipv6_only(*taken, steered.address)
                         ? "; it listens on [::], which counts also if it is for IPv6 alone"
                         : ""),
         fmt::format("ss -tanp 'sport = :{}' shows the program: end it, or give it another port",
                     taken->port)});
  if (const std::string other = host.xdp_obstacle(interface); !other.empty())
    problems.push_back(
        {interface, other, fmt::format("remove it, or sudo ztcp_setup --keep {}", interface)});
}

bool XdpProgram::holds(Host& host) const {
  const auto owner = ownership_of(host, mode(), user, group, ids);
  return owner && host.xdp_program(folder()) == steering() &&
         std::all_of(kFiles.begin(), kFiles.end(), [&](const char* file) {
           return host.facts(folder() + file).ownership == *owner;
         });
}

Read<XdpProgram::Before> XdpProgram::before(Host& host) const {
  return Before{missing_folders(host, folder() + "/.")};
}

Preview XdpProgram::preview(Host& host) const {
  const auto have = host.xdp_program(folder());
  return {"", have ? text_of(*have) : "no program of ztcp's",
          fmt::format("{}, for {}", text_of(steering()), ownership_text(mode(), user, group)),
          fmt::format("# attaches and pins the XDP program in {}", folder())};
}

Done XdpProgram::apply(Host& host, Before& before) const {
  const auto owner = ownership_of(host, mode(), user, group, ids);
  if (!owner) return unknown_owner(interface, user, group);
  const auto failed = [&](const Status& status) {
    return tl::unexpected(
        problem_of(host, interface, status.error(), "see dmesg, and ip link show " + interface));
  };
  // One of another steering.
  if (const Status removed = host.detach_xdp(folder()); !removed) return failed(removed);
  if (Done made = make_folders(host, before.made_folders); !made) return made;
  if (const Status attached = host.attach_xdp(folder(), steering()); !attached)
    return failed(attached);
  for (const char* file : kFiles)
    if (const Status given = host.set_ownership(folder() + file, *owner); !given)
      return failed(given);
  return {};
}

std::string XdpProgram::restored(const Before&) const {
  return fmt::format("{} has no program of ztcp's", interface);
}

Reverted XdpProgram::revert(Host& host, const Before& before) const {
  if (const Status removed = host.detach_xdp(folder()); !removed)
    return {{problem_of(host, interface, removed.error(), fmt::format("sudo rm -r {}", folder()))},
            {}};
  return reverted(clear_folders(host, before.made_folders));
}

void XdpProgram::fields(Fields& fields) {
  fields.text("interface", interface);
  fields.text("address", address);
  fields.number("listen_port", listen_port);
  fields.number("first_port", first_port);
  fields.number("last_port", last_port);
  fields.optional_number("processes", processes);
  fields.text("user", user);
  fields.text("group", group);
  ids.fields(fields);
}

}  // namespace ztcp::setup::resource
