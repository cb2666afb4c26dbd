// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Checks a tun/tap interface.
#include <unistd.h>

#include <fmt/format.h>

#include "config/check/checklist.h"
#include "config/machine/readings.h"

namespace ztcp::config {

Next check_tap_device(Checklist& list, const Nic& nic) {
  const std::string clone = "/dev/net/tun";
  if (!list.machine.may_access(clone, R_OK | W_OK))
    list.fault("tap", nic.name, fmt::format("user {} may not open {}", ::geteuid(), clone),
               "sudo modprobe tun; in a container pass --device /dev/net/tun");
  return Next::kGoOn;
}

Next check_tap_interface(Checklist& list, const Nic& nic) {
  const std::string folder = "/sys/class/net/" + nic.tap_interface;
  const auto mtu = read_line(list.machine, folder + "/mtu");
  if (!mtu || !exists(list.machine, folder + "/tun_flags")) {
    list.fault(
        "tap", nic.name,
        fmt::format("tap_interface = \"{}\" is not a tun/tap interface of this machine",
                    nic.tap_interface),
        fmt::format("sudo ip tuntap add dev {} mode tap user {}", nic.tap_interface, ::geteuid()));
    return Next::kGoOn;
  }
  if (*mtu == fmt::format("{}", nic.mtu_bytes))
    list.good("tap", nic.name, fmt::format("{}, MTU {}", nic.tap_interface, *mtu));
  else
    list.fault("mtu", nic.name,
               fmt::format("mtu_bytes = {} in the config, {} has {}", nic.mtu_bytes,
                           nic.tap_interface, *mtu),
               fmt::format("sudo ip link set dev {} mtu {}", nic.tap_interface, nic.mtu_bytes));
  return Next::kGoOn;
}

}  // namespace ztcp::config
