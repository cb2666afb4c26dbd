// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/port_choice.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/log.h"
#include "core/pci_path.h"
#include "transport/verbs/open_devices.h"

namespace ztcp::verbs {
namespace {

class PortChooser {
 public:
  PortChooser(const Api& api, const NcclVariables& variables, const LocalAddress& exchange,
              const std::string& sys_root)
      : api_(api), variables_(variables), exchange_(exchange), sys_root_(sys_root) {}

  void inspect(ibv_device* device) {
    if (!variables_.devices.fits(device->name)) {
      left_out_.push_back(fmt::format("{} (not meant)", device->name));
      return;
    }
    const Opened opened = open_device(api_, device);
    if (!opened) return leave_out(opened.error());
    ibv_device_attr attr{};
    if (const int error = api_.query_device((*opened)->context.get(), &attr); error != 0)
      return leave_out(fmt::format("{} can't be queried ({})", device->name, std::strerror(error)));
    for (std::uint8_t port = 1; port <= attr.phys_port_cnt; ++port)
      inspect(*opened, *device, port, attr.phys_port_cnt == 1);
  }

  // By PCI address, so that equal hosts have the same order regardless of device names; software
  // devices last.
  std::vector<config::Nic> taken() {
    if (variables_.is_pci_ordered)
      std::ranges::stable_sort(taken_, [](const Taken& a, const Taken& b) {
        return std::pair(a.pci.empty(), a.pci) < std::pair(b.pci.empty(), b.pci);
      });
    std::vector<config::Nic> nics;
    for (Taken& one : taken_) nics.push_back(std::move(one.nic));
    return nics;
  }
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  struct Taken {
    std::string pci;  // "0000:17:00.0"
    config::Nic nic;
  };

  // Warns a job that names a port which it has to do without.
  void leave_out(const std::string& why) {
    log::warn("no RDMA over {}", why);
    left_out_.push_back(why);
  }

  void inspect(const std::shared_ptr<OpenDevice>& opened, const ibv_device& device,
               std::uint8_t port, bool is_only_port) {
    ibv_port_attr state{};
    if (const int error = api_.query_port(opened->context.get(), port, &state); error != 0)
      return leave_out(fmt::format("port {} of {}, which can't be queried ({})", port, device.name,
                                   std::strerror(error)));
    const char* const why = state.state != IBV_PORT_ACTIVE                ? "not active"
                            : !variables_.devices.fits(device.name, port) ? "not meant"
                                                                          : nullptr;
    if (why != nullptr) {
      left_out_.push_back(fmt::format("{} port {} ({})", device.name, port, why));
      return;
    }
    if (const std::string fault = fault_of_kind(device, port, state); !fault.empty())
      return leave_out(fault);
    if (device.transport_type == IBV_TRANSPORT_IWARP)
      if (const std::string fault = fault_of_iwarp(opened); !fault.empty()) return leave_out(fault);
    take(device, port, is_only_port);
  }

  std::string fault_of_iwarp(const std::shared_ptr<OpenDevice>& opened) const {
    Device device;
    device.hca = opened->name;
    device.opened = opened;
    const IpAddress& address = exchange_.prefix.address;
    device.exchange.address = address;
    device.exchange.scope = address.is_link_local_v6() ? exchange_.index : 0;
    return read_iwarp(device);
  }

  void take(const ibv_device& device, std::uint8_t port, bool is_only_port) {
    Taken& out = taken_.emplace_back();
    const std::string link = sys_root_ + "/class/infiniband/" + device.name + "/device";
    const std::string path = pci_path_of(sys_root_, link);
    out.pci = path.substr(path.rfind('/') + 1);
    out.nic.name = is_only_port ? device.name : fmt::format("{}-{}", device.name, port);
    out.nic.driver = config::NicDriver::kVerbs;
    out.nic.device = device.name;
    out.nic.device_port = port;
    out.nic.address = exchange_.prefix;
    out.nic.first_port = out.nic.last_port = 0;
    if (const HcaFilter::Name* const named = variables_.devices.find(device.name, port)) {
      constexpr int kMost = 32767;  // The limit of the config's keys.
      out.nic.rail = std::min(named->rail, kMost);
      out.nic.plane = std::min(named->plane, kMost);
    }
  }

  const Api& api_;
  const NcclVariables& variables_;
  const LocalAddress& exchange_;
  const std::string& sys_root_;
  std::vector<Taken> taken_;
  std::vector<std::string> left_out_;
};

}  // namespace

Result<config::Fabric, std::string> fabric_of(const Api& api, config::Fabric settings,
                                              const NcclVariables& variables,
                                              const LocalAddress& exchange,
                                              const std::string& sys_root) {
  if (variables.is_disabled)
    return tl::unexpected(std::string("NCCL_IB_DISABLE=1 forbids RDMA devices: unset it"));
  const DeviceList list(api);
  config::Fabric fabric = std::move(settings);
  fabric.path = variables.devices.is_set() ? "NCCL_IB_HCA=" + variables.devices_text
                                           : std::string("the choice of all active ports");
  PortChooser chooser(api, variables, exchange, sys_root);
  for (ibv_device* const one : list.all()) chooser.inspect(one);
  fabric.nics = chooser.taken();
  if (!fabric.nics.empty()) return fabric;
  return tl::unexpected(list.all().empty()
                            ? std::string("this host has no RDMA device (ibv_devices lists none)")
                            : fmt::format("no port of an RDMA device is active and fits {}: {}",
                                          fabric.path, fmt::join(chooser.left_out(), ", ")));
}

}  // namespace ztcp::verbs
