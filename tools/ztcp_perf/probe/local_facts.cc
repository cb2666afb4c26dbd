// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/local_facts.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sys/utsname.h>
#include <system_error>
#include <thread>

#include "config/environment.h"
#include "config/file/load.h"
#include "config/machine/live_machine.h"
#include "tools/common/shared_config.h"
#include "tools/ztcp_perf/failure.h"

namespace ztcp::perf::probe {
namespace {

std::string first_line(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

int mtu_of_interface(const std::string& interface) {
  if (interface.empty() || interface.find('/') != std::string::npos) return 0;
  const std::string text = first_line("/sys/class/net/" + interface + "/mtu");
  return text.empty() ? 0 : std::atoi(text.c_str());
}

// The MTU of a PCI function's interface, which for an RDMA device is its Ethernet port.
int mtu_at(const std::string& pci_path) {
  if (pci_path.empty()) return 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(pci_path + "/net", error))
    return mtu_of_interface(entry.path().filename().string());
  return 0;
}

int mtu_of(const DeviceProperties& device, const std::optional<config::Fabric>& fabric) {
  if (fabric)
    for (const config::Nic& nic : fabric->nics) {
      if (config::device_name(nic) != device.name) continue;
      if (nic.driver == config::NicDriver::kSocket) return mtu_of_interface(nic.interface);
      if (nic.driver != config::NicDriver::kVerbs) return nic.mtu_bytes;
    }
  const int mtu = mtu_of_interface(device.name);
  return mtu != 0 ? mtu : mtu_at(device.pci_path);
}

std::vector<NicFacts> nics_of(Net& net, const std::optional<config::Fabric>& fabric,
                              const std::vector<int>& only) {
  int count = 0;
  const ncclResult_t result = net.devices(&count);
  if (result != ncclSuccess) fail("devices() failed: {}", name_of(result));
  if (count <= 0) fail("the plugin has no devices");
  if (!only.empty() && only.back() >= count)
    fail("--device {}: the plugin has {} devices", only.back(), count);
  std::vector<NicFacts> nics;
  for (int i = 0; i < count; ++i) {
    if (!only.empty() && !std::ranges::binary_search(only, i)) continue;
    DeviceProperties device;
    const ncclResult_t told = net.properties(i, &device);
    if (told != ncclSuccess) fail("getProperties({}) failed: {}", i, name_of(told));
    if (only.empty() && device.name.find('#') != std::string::npos) continue;
    nics.push_back({.name = device.name,
                    .device = i,
                    .speed_mbps = device.speed_mbps,
                    .mtu_bytes = mtu_of(device, fabric)});
  }
  return nics;
}

}  // namespace

std::string path_of(const std::string& plugin) {
  if (plugin.find('/') != std::string::npos) return plugin;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.ends_with("/" + plugin)) return line.substr(line.find('/'));
  return {};
}

std::string hash_of(const std::string& plugin) {
  std::ifstream file(path_of(plugin), std::ios::binary);
  if (!file) return "unknown";
  return tools::short_hash(std::string(std::istreambuf_iterator<char>(file), {}));
}

HostFacts local_facts(Net& net, const std::string& plugin, const std::vector<int>& only) {
  config::LiveMachine machine;
  const config::LoadResult loaded = config::load(machine, config::config_path());
  HostFacts facts;
  facts.version = ZTCP_VERSION;
  facts.plugin = hash_of(plugin);
  facts.config = loaded.fabric ? tools::shared_hash(*loaded.fabric)
                 : loaded.failure == config::LoadFailure::kMissing ? "none"
                                                                   : "broken";
  utsname kernel{};
  if (uname(&kernel) == 0) facts.kernel = kernel.release;
  facts.machine = first_line("/proc/sys/kernel/random/boot_id");
  facts.cpus = static_cast<int>(std::thread::hardware_concurrency());
  facts.nics = nics_of(net, loaded.fabric, only);
  return facts;
}

}  // namespace ztcp::perf::probe
