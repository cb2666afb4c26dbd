// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// An RDMA device against the machine. What is wrong with one is a warning: its connections are
// refused by name, and the other NICs serve.
#include <algorithm>
#include <string>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "config/check/checklist.h"
#include "config/machine/readings.h"

namespace ztcp::config {
namespace {

constexpr const char* kDevices = "/sys/class/infiniband";

}  // namespace

Next check_rdma_device(Checklist& list, const Nic& nic) {
  const std::string folder = fmt::format("{}/{}", kDevices, nic.device);
  if (!exists(list.machine, folder)) {
    const std::vector<std::string> others = list.machine.list(kDevices);
    list.warning("rdma_device", nic.name,
                 fmt::format("no RDMA device {} is here; this host has {}", nic.device,
                             others.empty() ? "none" : fmt::format("{}", fmt::join(others, ", "))),
                 fmt::format("rdma link shows them; load the NIC's RDMA driver, or correct device "
                             "in {}",
                             list.fabric.path));
    return Next::kStop;
  }
  const std::string port = fmt::format("{}/ports/{}", folder, nic.device_port);
  // "4: ACTIVE"
  const std::string state = read_line(list.machine, port + "/state").value_or("");
  if (state.empty() || state.find("ACTIVE") == std::string::npos) {
    list.warning("rdma_device", nic.name,
                 state.empty()
                     ? fmt::format("{} has no port {}", nic.device, nic.device_port)
                     : fmt::format("port {} of {} is \"{}\"", nic.device_port, nic.device, state),
                 state.empty() ? fmt::format("correct device_port in {}", list.fabric.path)
                               : "plug the cable in and set its interface up; InfiniBand needs a "
                                 "subnet manager, too");
    return Next::kStop;
  }
  list.good("rdma_device", nic.name,
            fmt::format("port {} of {} is active", nic.device_port, nic.device));
  return Next::kGoOn;
}

Next check_rdma_access(Checklist& list, const Nic& nic) {
  const std::string folder = "/dev/infiniband";
  const std::vector<std::string> files = list.machine.list(folder);
  const auto is_open = [&](const std::string& file) {
    return file.starts_with("uverbs") && list.machine.may_access(folder + "/" + file, R_OK | W_OK);
  };
  if (std::any_of(files.begin(), files.end(), is_open)) {
    list.good("rdma_access", nic.name, "this user may open /dev/infiniband/uverbs*");
    return Next::kGoOn;
  }
  list.warning("rdma_access", nic.name,
               files.empty() ? "there is no /dev/infiniband/uverbs*"
                             : "this user may not open /dev/infiniband/uverbs*",
               files.empty() ? "sudo modprobe ib_uverbs; in a container pass /dev/infiniband in"
                             : "install rdma-core, whose udev rules open them to all users");
  return Next::kGoOn;
}

Next check_rdma_address(Checklist& list, const Nic& nic) {
  const auto found = std::find_if(
      list.addresses.begin(), list.addresses.end(),
      [&](const LocalAddress& one) { return one.prefix.address == nic.address.address; });
  if (found != list.addresses.end()) {
    list.good("rdma_address", nic.name,
              fmt::format("{} is on {}", to_string(nic.address), found->interface));
    return Next::kGoOn;
  }
  list.warning("rdma_address", nic.name,
               fmt::format("address = \"{}\" is none of this host's", to_string(nic.address)),
               fmt::format("ip -brief address shows them; write one through which the peers reach "
                           "this host into {}",
                           list.fabric.path));
  return Next::kGoOn;
}

}  // namespace ztcp::config
