// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/plan/resources_for.h"

#include <algorithm>

#include <fmt/format.h>

#include "config/machine/gpu_direct.h"
#include "config/machine/mounts.h"
#include "config/machine/port_set.h"
#include "config/machine/readings.h"
#include "config/nic_interface.h"
#include "hugepage/budget.h"
#include "tools/ztcp_setup/host/job_services.h"

namespace ztcp::setup {
namespace {

constexpr const char* kServiceDropIn = "50-ztcp.conf";

class Wanted {
 public:
  Wanted(const config::Fabric& fabric, const PlanParts& parts, Host& host)
      : fabric_(fabric), parts_(parts), host_(host) {}

  Resources make() {
    // Settings for the next boot and the next login come first, the NICs last: few steps should lie
    // between the loss of a NIC and the config that replaces it.
    resources_ = parts_.boot;
    // Kernel interfaces need nothing, and RDMA devices little.
    if (has_nics(is_past_kernel)) {
      want_limits();
      if (has_nics(is_mlx5)) {
        want_pages();
        want_mount();
      }
      want_folders();
      if (has_nics(is_xdp))
        add("file system for XDP programs", resource::Mount{config::kBpfFolder, "bpf", "mode=755"});
      want_ports();
      for (const config::Nic& nic : fabric_.nics)
        if (is_xdp(nic)) want_program(nic);
      want_config();
      want_unit();
      return std::move(resources_);
    }
    if (!has_nics(is_on_pci)) {
      if (has_nics(is_on_rdma)) {
        want_limits();
        if (parts_.wants_peer_memory) want_peer_memory();
      }
      want_config();
      return std::move(resources_);
    }
    want_limits();
    want_pages();
    want_mount();
    want_modules();
    want_folders();
    for (const config::Nic& nic : fabric_.nics)
      if (is_on_pci(nic)) want_nic(nic);
    want_config();
    want_unit();
    return std::move(resources_);
  }

 private:
  static bool is_on_pci(const config::Nic& nic) { return nic.driver == config::NicDriver::kPci; }
  static bool is_on_rdma(const config::Nic& nic) { return nic.driver == config::NicDriver::kVerbs; }
  static bool is_xdp(const config::Nic& nic) { return nic.driver == config::NicDriver::kXdp; }
  static bool is_mlx5(const config::Nic& nic) { return nic.driver == config::NicDriver::kMlx5; }
  static bool is_past_kernel(const config::Nic& nic) { return config::is_past_kernel(nic.driver); }
  bool has_nics(bool (*kind)(const config::Nic&)) const {
    return std::any_of(fabric_.nics.begin(), fabric_.nics.end(), kind);
  }

  template <class What>
  void add(std::string why, What what) {
    resources_.push_back({std::move(why), std::move(what)});
  }

  const std::string& user() const { return fabric_.host.user; }
  const std::string& group() const { return fabric_.host.group; }
  bool for_root_only() const { return user().empty() && group().empty(); }

  // The IOMMU's mappings count as locked memory, and so does memory registered with RDMA devices
  // and that of AF_XDP sockets and mlx5 NICs. Root may lock any amount; sessions get their limit
  // from PAM; jobs of a service inherit the service's.
  void want_limits() {
    if (for_root_only()) return;
    if (fabric_.host.host_class != config::HostClass::kIommu && !has_nics(is_on_rdma) &&
        !has_nics(is_past_kernel))
      return;
    std::string text = "# Written by ztcp_setup: memory that NICs read and write is locked.\n";
    if (!user().empty()) text += fmt::format("{} - memlock unlimited\n", user());
    if (!group().empty()) text += fmt::format("@{} - memlock unlimited\n", group());
    add("unlimited locked memory for sessions of " + who(),
        resource::File{"/etc/security/limits.d/ztcp.conf", text, 0644, ""});
    bool any = false;
    for (const std::string& service : job_services(host_)) {
      const std::string path = fmt::format("/etc/systemd/system/{}.d/{}", service, kServiceDropIn);
      if (!limits_memlock(host_, service) && !config::exists(host_, path)) continue;
      any = true;
      add(fmt::format("unlimited locked memory for jobs of {}, once it is restarted", service),
          resource::File{path, "# Written by ztcp_setup.\n[Service]\nLimitMEMLOCK=infinity\n", 0644,
                         ""});
    }
    if (any) add("systemd's settings, reloaded", resource::Notice{{"systemctl", "daemon-reload"}});
  }

  std::string who() const {
    if (!user().empty() && !group().empty())
      return fmt::format("user {} and group {}", user(), group());
    return user().empty() ? "group " + group() : "user " + user();
  }

  void want_pages() {
    const std::uint32_t page_kib = fabric_.hugepages.page_kib;
    for (const NodePages& pages : parts_.pages) {
      const std::string pool = pages.node < 0
                                   ? "/sys/kernel/mm"
                                   : fmt::format("/sys/devices/system/node/node{}", pages.node);
      add(fmt::format(
              "{} of {}",
              pages.node < 0 ? "hugepages" : fmt::format("hugepages of NUMA node {}", pages.node),
              hugepage::page_name(page_kib)),
          resource::Value{fmt::format("{}/hugepages/hugepages-{}kB/nr_hugepages", pool, page_kib),
                          std::to_string(pages.want), true});
    }
  }

  // ztcp allocates its pages without this mount; other DPDK programs and hugeadm need it. DPDK
  // fails at a mount it cannot open, so accounts that run jobs always have access.
  void want_mount() {
    const std::uint32_t page_kib = fabric_.hugepages.page_kib;
    const bool large = page_kib >= 1U << 20U;
    const std::string ours = large ? "/dev/hugepages1G" : "/dev/hugepages2M";
    for (const config::Mount& mount : config::mounts_of(host_))
      if (mount.type == "hugetlbfs" && mount.folder != ours &&
          mount.has(large ? "pagesize=1G" : "pagesize=2M"))
        return;
    add(fmt::format("hugetlbfs of {}", hugepage::page_name(page_kib)),
        resource::Mount{ours, "hugetlbfs",
                        fmt::format("pagesize={},mode=1777", large ? "1G" : "2M")});
  }

  void want_modules() {
    add("vfio-pci at each boot", resource::File{"/etc/modules-load.d/ztcp.conf",
                                                "# Written by ztcp_setup.\nvfio-pci\n", 0644, ""});
    add("the driver that gives NICs to processes", resource::Module{"vfio-pci"});
    if (fabric_.host.host_class == config::HostClass::kNoIommu)
      add("vfio without an IOMMU",
          resource::Value{"/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y", false});
  }

  void want_peer_memory() {
    const std::string module = config::kPeerMemoryModule;
    add(module + " at each boot",
        resource::File{"/etc/modules-load.d/ztcp.conf",
                       "# Written by ztcp_setup.\n" + module + "\n", 0644, ""});
    add("the module that gives RDMA devices access to GPU memory", resource::Module{module});
  }

  void want_folders() {
    const std::string& run_dir = fabric_.run_dir;
    // Group members open each other's lock files. No other user may: write access allows to block a
    // NIC.
    const resource::Folder folder =
        for_root_only()
            ? resource::Folder{run_dir, 0755, "", ""}
            : resource::Folder{run_dir, group().empty() ? 0700U : 02770U, user(), group()};
    add("folder for locks of NICs", folder);
  }

  void want_nic(const config::Nic& nic) {
    add(fmt::format("{} ({})", nic.pci, nic.name), resource::Driver{nic.pci, "vfio-pci"});
    if (for_root_only()) return;
    add(fmt::format("{} ({}) for {}", nic.pci, nic.name, who()),
        resource::Access{nic.pci, user(), group(), group().empty() ? 0600U : 0660U});
  }

  // The kernel must not give one of them to a connection, whose frames would come to ztcp.
  void want_ports() {
    config::PortSet ports;
    const unsigned listening = fabric_.messages.listen_port;
    for (const config::Nic& nic : fabric_.nics) {
      if (!is_past_kernel(nic)) continue;
      config::add_range(ports, listening, listening + nic.processes - 1U);
      config::add_range(ports, nic.first_port, nic.last_port);
    }
    add("TCP ports for ztcp alone", resource::ReservedPorts{config::to_text(ports)});
  }

  void want_program(const config::Nic& nic) {
    add(fmt::format("XDP program on {} ({}){}", nic.interface, nic.name,
                    for_root_only() ? "" : " for " + who()),
        resource::XdpProgram{
            nic.interface,
            to_string(nic.address.address),
            fabric_.messages.listen_port,
            nic.first_port,
            nic.last_port,
            user(),
            group(),
            {},
            nic.processes == 1 ? std::nullopt : std::optional<std::uint32_t>(nic.processes)});
  }

  void want_config() {
    add("the config",
        resource::File{fabric_.path, parts_.config_text, parts_.config_mode, parts_.config_group});
  }

  void want_unit() {
    if (!has_packaged_unit(host_)) {
      if (parts_.unit_text.empty()) return;
      add("unit for each boot", resource::File{fmt::format("{}/{}", unit_folders().front(), kUnit),
                                               parts_.unit_text, 0644, ""});
      add("systemd's units, reloaded", resource::Notice{{"systemctl", "daemon-reload"}});
    }
    add("set-up at each boot", resource::Unit{kUnit});
  }

  const config::Fabric& fabric_;
  const PlanParts& parts_;
  Host& host_;
  Resources resources_;
};

}  // namespace

bool has_packaged_unit(Host& host) {
  // The first two belong to the administrator and the running system.
  const auto& folders = unit_folders();
  return std::any_of(folders.begin() + 2, folders.end(), [&](const std::string& folder) {
    return config::exists(host, folder + "/" + kUnit);
  });
}

Resources resources_for(const config::Fabric& fabric, const PlanParts& parts, Host& host) {
  return Wanted(fabric, parts, host).make();
}

}  // namespace ztcp::setup
