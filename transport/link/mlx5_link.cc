// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/mlx5_link.h"

#include <cstring>
#include <filesystem>
#include <sys/utsname.h>
#include <utility>

#include <fmt/format.h>

#include "core/log.h"
#include "core/nic_families.h"
#include "core/pci_path.h"
#include "transport/link/dma_map.h"
#include "transport/link/host_address_link.h"
#include "transport/link/mlx5/driver.h"
#include "transport/link/port_link.h"
#include "transport/link/xdp/interface.h"

namespace ztcp::link {
namespace {

namespace fs = std::filesystem;

// The driver must not change MAC addresses and flags of a virtual function's interface.
constexpr const char* kDriverOptions = "vf_nl_en=0";

tl::unexpected<Error> refuse(const Mlx5Config& config, const Error& error, const std::string& why) {
  log::warn("mlx5 {}: {}", config.interface, why);
  return tl::unexpected<Error>(error);
}

// The address of the interface's NIC on PCI. Refuses NICs that are no ConnectX.
Result<std::string> find_nic(const Mlx5Config& config) {
  const fs::path nic = pci_path_of("/sys", "/sys/class/net/" + config.interface + "/device");
  std::error_code missing;
  const std::string driver =
      nic.empty() ? std::string() : fs::read_symlink(nic / "driver", missing).filename().string();
  if (driver == kMlx5KernelDriver) return nic.filename().string();
  return refuse(config, {Errc::kBadConfig, 0, "interface"},
                fmt::format("its driver is {}, and driver = \"mlx5\" is for NICs of {}; "
                            "driver = \"xdp\" serves others",
                            driver.empty() ? "not on PCI" : driver, kMlx5KernelDriver));
}

// libmlx5 keeps its memory from forked children by itself only if a variable of the environment
// tells it of hugepages.
Status require_kernel(const Mlx5Config& config) {
  utsname kernel{};
  uname(&kernel);
  if (forks_copy_pinned_pages(kernel.release)) return {};
  return refuse(config, {Errc::kBadConfig, 0, "uname"},
                fmt::format("kernel {} moves memory away from the NIC when this process forks; "
                            "driver = \"mlx5\" needs Linux 5.13 or newer",
                            kernel.release));
}

std::string advice_for(const Error& error, const std::string& nic) {
  if (error.code == Errc::kOutOfMemory)
    return "its frames don't fit into this process's hugepages; raise hugepages.per_process_mib, "
           "or the NIC's numa_node is another one";
  return fmt::format(
      "the process needs CAP_NET_RAW, the device file /dev/infiniband/uverbsN of {}, and locked "
      "memory (ulimit -l unlimited): ztcp_setup --check and ZTCP_DPDK_LOG=1 tell more",
      nic);
}

}  // namespace

Result<std::vector<std::unique_ptr<Link>>> open_mlx5(const Mlx5Config& config) {
  ZTCP_CHECK(require_kernel(config));
  const xdp::InterfaceFacts interface =
      ZTCP_TRY(xdp::find_interface("mlx5", config.interface, config.mtu_bytes));
  const std::string nic = ZTCP_TRY(find_nic(config));
  ZTCP_CHECK(start_eal(config.eal));
  if (const auto started = mlx5::start_driver(); !started)
    return refuse(config, {Errc::kNoDevice, 0, "rdma-core"}, started.error());

  PortConfig port_config;
  port_config.device = nic;
  port_config.pci_options = kDriverOptions;
  port_config.mtu_bytes = config.mtu_bytes;
  port_config.is_ipv6 = !config.steering.address.is_v4();
  port_config.numa_node = config.numa_node;
  port_config.queues = config.queues;
  port_config.fewer_queues_will_do = config.fewer_queues_will_do;
  port_config.rx_frames = config.rx_frames;
  port_config.steering = config.steering;
  auto port = Port::open(port_config);
  if (!port)
    return refuse(
        config, port.error(),
        fmt::format("{} failed ({}); {}", port.error().where, std::strerror(port.error().sys_errno),
                    advice_for(port.error(), nic)));
  PortLinkOptions options;
  options.description =
      fmt::format("mlx5 {}, {} {}", config.interface, nic, port->abilities().driver);
  options.watches_device = true;
  options.counts_drops = config.counts_drops;
  const auto open = std::make_shared<OpenPort>(std::move(*port), std::move(options));
  if (const Status& started = open->started; !started)
    return refuse(
        config, started.error(),
        fmt::format("{} failed ({}); {}", started.error().where,
                    std::strerror(started.error().sys_errno), advice_for(started.error(), nic)));
  const std::uint16_t queues = open->port.queues();
  const std::shared_ptr<xdp::HostTables> tables =
      ZTCP_TRY(xdp::HostTables::open({.interface = interface,
                                      .own = config.steering.address,
                                      .lanes = queues,
                                      .mtu_bytes = config.mtu_bytes,
                                      .queues = 0,
                                      .kind = "mlx5"}));
  std::vector<std::unique_ptr<Link>> links;
  for (std::uint16_t queue = 0; queue < queues; ++queue)
    links.push_back(std::make_unique<HostAddressLink>(std::make_unique<PortLink>(open, queue),
                                                      tables, queue, config.steering.address));
  return links;
}

}  // namespace ztcp::link
