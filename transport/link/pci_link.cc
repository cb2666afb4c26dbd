// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <system_error>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <rte_vfio.h>

#include "core/fork_guard.h"
#include "core/log.h"
#include "transport/link/dpdk_link.h"
#include "transport/link/port_link.h"

namespace ztcp::link {
namespace {

namespace fs = std::filesystem;

// Why a NIC could not be attached, and the mending step, as far as sysfs and /dev show.
struct Diagnosis {
  Errc code = Errc::kSystem;
  std::string text;
};

Diagnosis diagnose(const std::string& address) {
  const fs::path device = fs::path("/sys/bus/pci/devices") / address;
  std::error_code missing;
  if (!fs::exists(device, missing))
    return {Errc::kNoDevice, "there is no such PCI device; run: ztcp_setup --check"};
  const std::string driver = fs::read_symlink(device / "driver", missing).filename();
  if (driver != "vfio-pci")
    return {Errc::kNoDevice, fmt::format("its driver is {}, not vfio-pci; run ztcp_setup again",
                                         driver.empty() ? "none" : driver)};
  const std::string group = fs::read_symlink(device / "iommu_group", missing).filename();
  std::string node = "/dev/vfio/" + group;
  if (!fs::exists(node, missing)) node = "/dev/vfio/noiommu-" + group;
  const int fd = ::open(node.c_str(), O_RDWR | O_CLOEXEC);
  const int why = fd >= 0 ? 0 : errno;
  if (fd >= 0) ::close(fd);
  if (why == EBUSY)
    return {Errc::kBusy, fmt::format("{} is held by another process (pid unknown, another "
                                     "container?); stop that one",
                                     node)};
  if (why == EACCES || why == EPERM)
    return {Errc::kSystem, fmt::format("{} may not be opened by this user; run ztcp_setup with "
                                       "this user's group, or give the container the device",
                                       node)};
  if (why != 0)
    return {Errc::kNoDevice,
            fmt::format("{}: {}; give the container /dev/vfio", node, std::strerror(why))};
  return {
      Errc::kSystem,
      "vfio has it but DPDK could not start it: the limit of locked memory (ulimit -l) may be "
      "too low, or the driver missing from this build; ztcp_setup --check and ZTCP_DPDK_LOG=1 tell "
      "more"};
}

// User memory behind the IOMMU: the device uses a process's own addresses. rte_dev_dma_map()
// requires memory that EAL was told of before, and calls the same function in the end.
class VfioMapper final : public DmaMapper {
 public:
  Status map(std::uintptr_t address, std::size_t size_bytes) override {
    const QuietEal quiet;
    rte_errno = errno = 0;
    const int rc =
        rte_vfio_container_dma_map(RTE_VFIO_DEFAULT_CONTAINER_FD, address, address, size_bytes);
    const int why = rte_errno != 0 ? rte_errno : errno;
    if (rc != 0) return fail(Errc::kSystem, "rte_vfio_container_dma_map", why);
    return {};
  }
  void unmap(std::uintptr_t address, std::size_t size_bytes) override {
    const QuietEal quiet;
    rte_vfio_container_dma_unmap(RTE_VFIO_DEFAULT_CONTAINER_FD, address, address, size_bytes);
  }

 private:
  // Silences EAL, which logs an error each time for a failed map, which only costs a copy (DmaMap
  // logs it once), and for memory that can't be unmapped for NICs that were removed.
  struct QuietEal {
    // One at a time, or the second would save the first one's level as the one to restore.
    static std::mutex& mutex() {
      static auto* const instance = new std::mutex;
      return *instance;
    }
    const std::scoped_lock<std::mutex> lock{mutex()};
    const int level = rte_log_get_level(RTE_LOGTYPE_EAL);
    QuietEal() { rte_log_set_level(RTE_LOGTYPE_EAL, RTE_LOG_CRIT); }
    ~QuietEal() { rte_log_set_level(RTE_LOGTYPE_EAL, static_cast<std::uint32_t>(level)); }
  };
};

// All NICs of the process are in one vfio container, which maps a page once for all of them.
// Outlives every link.
DmaMap& user_memory() {
  static auto* const map = new DmaMap(*new VfioMapper, "vfio");
  return *map;
}

// Some IOMMUs, above all virtual ones of 39 bits, reach EAL's memory, which has low addresses, but
// none of the addresses that the kernel gives to other memory.
Status reach_user_memory() {
  utsname kernel{};
  uname(&kernel);
  if (!forks_copy_pinned_pages(kernel.release))
    return fail(Errc::kSystem, "a kernel older than 5.13 moves it when this process forks",
                ENOTSUP);
  const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* page =
      ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return fail_errno("mmap");
  const auto at = reinterpret_cast<std::uintptr_t>(page);
  VfioMapper mapper;
  const Status mapped = mapper.map(at, page_bytes);
  if (mapped) mapper.unmap(at, page_bytes);
  ::munmap(page, page_bytes);
  return mapped;
}

}  // namespace

Result<std::vector<std::unique_ptr<Link>>> open_pci(const PciConfig& config) {
  PortConfig port_config;
  port_config.device = config.address;
  port_config.mtu_bytes = config.mtu_bytes;
  port_config.vlan_id = config.vlan_id;
  port_config.is_ipv6 = config.is_ipv6;
  port_config.numa_node = config.numa_node;
  port_config.queues = config.queues;
  port_config.fewer_queues_will_do = config.fewer_queues_will_do;
  port_config.rx_frames = config.rx_frames;
  port_config.device_reads_user_memory = config.device_reads_user_memory;

  const DescriptorSweep opened;
  auto port = Port::open(port_config);
  // The group must be free as soon as this process ends, even if its children live on.
  // The device's descriptor comes from an ioctl; container and group are guarded as they open.
  opened.guard_new({"anon_inode:[vfio"});
  if (!port) {
    const Error& error = port.error();
    if (error.code == Errc::kBadConfig) return tl::unexpected<Error>(error);  // Already logged.
    const Diagnosis diagnosis =
        error.code == Errc::kOutOfMemory
            ? Diagnosis{error.code,
                        "its frames don't fit into this process's hugepages; raise "
                        "hugepages.per_process_mib, or the NIC's numa_node is another one"}
            : diagnose(config.address);
    log::warn("{}: {} failed ({}): {}", config.address, error.where, std::strerror(error.sys_errno),
              diagnosis.text);
    return fail(diagnosis.code, error.where, error.sys_errno);
  }
  PortLinkOptions options;
  options.description = fmt::format("{} {}", config.address, port->abilities().driver);
  options.watches_device = true;
  options.counts_drops = config.counts_drops;
  if (config.device_reads_user_memory && port->abilities().chained_buffers) {
    if (const Status reached = reach_user_memory()) {
      options.user_memory = &user_memory();
    } else {
      log::info("{}: sends are copied once: user memory can't be mapped ({}: {})",
                options.description, reached.error().where,
                std::strerror(reached.error().sys_errno));
    }
  }
  const auto open = std::make_shared<OpenPort>(std::move(*port), std::move(options));
  if (const Status& started = open->started; !started) {
    log::warn("{}: {} failed ({}); ZTCP_DPDK_LOG=1 tells more", open->options.description,
              started.error().where, std::strerror(started.error().sys_errno));
    return tl::unexpected<Error>(started.error());
  }
  std::vector<std::unique_ptr<Link>> queues;
  for (std::uint16_t queue = 0; queue < open->port.queues(); ++queue)
    queues.push_back(std::make_unique<PortLink>(open, queue));
  return queues;
}

}  // namespace ztcp::link
