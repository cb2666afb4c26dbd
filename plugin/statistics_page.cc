// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/statistics_page.h"

#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <unistd.h>

#include "core/log.h"
#include "core/log_origin.h"
#include "transport/stats/communicator_times.h"
#include "transport/stats/page_reader.h"
#include "transport/stats/process_page.h"

namespace ztcp::plugin {
namespace {

stats::Carrier carrier_of(TransportKind kind) {
  if (kind == TransportKind::kUstack) return stats::Carrier::kUserspaceTcp;
  return kind == TransportKind::kVerbs ? stats::Carrier::kRdma : stats::Carrier::kKernelSockets;
}

// "/sys/devices/pci0000:16/0000:17:00.0" ends in the function's address.
std::string nic_of(const DeviceProperties& device) {
  return device.pci_path.substr(device.pci_path.rfind('/') + 1);
}

}  // namespace

void open_statistics_page(const config::Fabric& fabric, std::uint64_t config_hash) {
  const log::LauncherRanks ranks = log::launcher_ranks(environ);
  // Without a config no folder is agreed: the pages are those of the user.
  const std::string run_dir = fabric.path.empty() ? "" : fabric.run_dir;
  const std::filesystem::path folder = stats::page_folder(run_dir);
  const bool is_shared = !run_dir.empty() && folder.parent_path() == run_dir;
  std::error_code ignored;
  auto page = stats::Page::create(
      folder, is_shared,
      {.version = ZTCP_VERSION,
       .config_path =
           fabric.path.empty() ? "" : std::filesystem::absolute(fabric.path, ignored).string(),
       .config_hash = config_hash,
       .rank = ranks.rank,
       .ranks = ranks.ranks,
       .local_rank = ranks.local_rank});
  if (page) return stats::set_process_page(std::move(*page));
  const Error& error = page.error();
  log::info(
      "no statistics page in {}: {}: {}; ztcp_stat does not see this process: make room there and "
      "let its user write to it, or set page = false in [statistics] (ZTCP_STATISTICS=off)",
      folder.string(), error.where, std::strerror(error.sys_errno));
}

void report_stragglers(std::uint64_t communicator) {
  const std::string text = stats::straggler_text(stats::communicator_times().take(communicator));
  if (!text.empty()) log::info("stragglers of communicator 0x{:x}: {}", communicator, text);
}

void list_devices(const std::vector<Device>& devices) {
  const auto page = stats::process_page();
  if (page == nullptr) return;
  for (const Device& device : devices) {
    stats::DeviceRecord record{};
    record.carrier = static_cast<std::uint32_t>(stats::Carrier::kKernelSockets);
    record.speed_mbps = device.properties.speed_mbps;
    record.mtu_bytes = device.properties.mtu_bytes;
    record.numa_node = device.properties.numa_node;
    record.address.set(device.properties.address);
    record.gpu.set(device.properties.gpu);
    record.name.set(device.properties.name);
    record.nic.set(nic_of(device.properties));
    if (device.transport != nullptr) {
      record.carrier = static_cast<std::uint32_t>(carrier_of(device.transport->kind()));
      record.plan.set(device.transport->describe_device(device.number));
    } else {
      record.plan.set(device.refusal);
    }
    page->add_device(record);
  }
}

// NCCL merges the same NICs for each communicator.
void list_merged_device(const Device& device) {
  const auto page = stats::process_page();
  if (page != nullptr && !page->device_named(device.properties.name)) list_devices({device});
}

}  // namespace ztcp::plugin
