// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/kernel/advice.h"

#include <algorithm>
#include <cerrno>
#include <string_view>

#include <fmt/format.h>

namespace ztcp::sockets {
namespace {

// The device's address is gone from this host. bind() does not fail so for lack of a port, because
// connect() chooses that.
bool is_without_address(const Error& error) {
  return error.sys_errno == EADDRNOTAVAIL && std::string_view(error.where) == kBind;
}

}  // namespace

std::string listen_advice(const Error& error, const Device& device,
                          const std::string& config_path) {
  if (error.code == Errc::kBusy && device.first_port == 0)
    return "; no port is left: sudo sysctl -w net.ipv4.ip_local_port_range='1024 65535'";
  if (error.code == Errc::kBusy)
    return fmt::format(
        "; each process of this host takes a port of {}-{}: widen first_port and last_port in {}",
        device.first_port, device.last_port, config_path);
  if (std::string_view(error.where) == kBindToDevice && error.sys_errno == EPERM)
    return fmt::format(
        "; another interface is in the network of {}, and kernels before 5.7 let a process bind "
        "sockets to an interface only with CAP_NET_RAW: give the job that (docker run --cap-add "
        "NET_RAW), or move one of the interfaces to another network",
        device.interface);
  if (is_without_address(error)) return address_advice(device.address, local_addresses());
  return error.code == Errc::kOutOfMemory ? resource_advice(error.sys_errno) : std::string();
}

std::string address_advice(IpAddress address, std::span<const LocalAddress> all) {
  const auto found =
      std::ranges::find(all, address, [](const LocalAddress& one) { return one.prefix.address; });
  if (found != all.end() && found->state == AddressState::kDuplicate)
    return fmt::format(
        "; {} has that address, but another host of its link has it, too (duplicate address "
        "detection failed): give one of the two hosts another address",
        found->interface);
  if (found != all.end() && found->state == AddressState::kTentative)
    return fmt::format(
        "; {} got that address just now, and the kernel is still checking that no other "
        "host has it (duplicate address detection): start again in two seconds",
        found->interface);
  return "; no interface of this machine has that address now: ip -brief address shows them";
}

std::string own_address_advice(IpAddress peer, std::span<const LocalAddress> all) {
  const bool is_loopback = peer.is_v4() && peer.v4().value >> 24 == 127;
  const auto found =
      std::ranges::find(all, peer, [](const LocalAddress& one) { return one.prefix.address; });
  if (found == all.end() && !is_loopback) return {};
  return fmt::format(
      "{} is an address of this host itself{}: if the peer is on another host, name an interface "
      "whose address is its own on each host by NCCL_SOCKET_IFNAME, or in ztcp.conf",
      to_string(peer), found == all.end() ? "" : " (" + found->interface + ")");
}

std::string resource_advice(int sys_errno) {
  switch (sys_errno) {
    case EMFILE:
      return "; this process may open no more files: raise ulimit -n";
    case ENFILE:
      return "; this machine may open no more files: raise fs.file-max (sysctl)";
    case ENOMEM:
    case ENOBUFS:
      return "; the kernel has no memory for it: check the memory limit of the job's cgroup, and "
             "net.ipv4.tcp_mem";
    case ENOSPC:
      return "; this user may watch no more descriptors: raise fs.epoll.max_user_watches (sysctl)";
    case EAGAIN:
      return "; no further thread may be started: raise ulimit -u, pids.max of the job's cgroup, "
             "or ulimit -v where it is limited";
    case EPERM:
    case EACCES:
    case ENOSYS:
      return "; that system call is forbidden here: check the seccomp profile of the job's "
             "container";
    default:
      return {};
  }
}

std::string shortage(const Error& error, const Device& device) {
  if (is_without_address(error))
    return fmt::format(
        "{} is no address of this machine any more, so no connection can start from it: is {} "
        "still there, and up? ip -brief address lists the interfaces",
        to_string(device.address), device.interface);
  switch (error.sys_errno) {
    case ENOBUFS:
    case ENOMEM:
      return "the kernel has no memory for another connection: check net.ipv4.tcp_mem";
    case EADDRNOTAVAIL:
    case EADDRINUSE:
      return fmt::format(
          "no port is left on {} to connect from: widen net.ipv4.ip_local_port_range, or let NCCL "
          "open fewer connections (NCCL_NCHANNELS_PER_NET_PEER=1)",
          to_string(device.address));
    case EPERM:
    case ENOSYS:
      return "no further connection can be opened" + resource_advice(error.sys_errno);
    default:
      return {};
  }
}

std::string ports_text(const Device& device, const Endpoint& listening) {
  const std::string at = to_string(device.address);
  if (device.first_port == 0) return fmt::format("port {} of {}", listening.port, at);
  return fmt::format("ports {}-{} of {}", device.first_port, device.last_port, at);
}

std::string interface_advice(InterfaceState state, const std::string& interface) {
  switch (state) {
    case InterfaceState::kUp:
      return {};
    case InterfaceState::kSetDown:
      return fmt::format("{0} of this host is down: ip link set dev {0} up", interface);
    case InterfaceState::kNoCarrier:
      return fmt::format(
          "{0} of this host has no carrier: check its cable and the switch's port (ip link show "
          "{0})",
          interface);
    case InterfaceState::kMissing:
      return fmt::format("{} of this host is gone: ip -brief link lists the interfaces", interface);
  }
  return {};
}

std::string failure_advice(Errc code, const Device& device) {
  switch (code) {
    case Errc::kNoRoute:
      return fmt::format(
          "check on both hosts that the interface is up (ip -brief address show {}), that a route "
          "leads to the other (ip route get the peer's address), and that no firewall rejects TCP "
          "between the two",
          device.interface);
    case Errc::kPathMtu:
      return fmt::format(
          "{0} has an MTU of {1} bytes, and a hop of the path drops packets of that size without "
          "telling: set the path's MTU on both hosts (ip link set dev {0} mtu 1500), let ICMP "
          "\"fragmentation needed\" through, or sysctl -w net.ipv4.tcp_mtu_probing=1",
          device.interface, device.mtu_bytes);
    default:
      return {};
  }
}

}  // namespace ztcp::sockets
