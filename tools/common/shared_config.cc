// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/common/shared_config.h"

#include <span>

#include <fmt/format.h>

#include "config/file/load.h"
#include "transport/msg/hmac_sha256.h"

namespace ztcp::tools {
namespace {

// MTU and speed are compared by themselves, as the hosts' NICs have them.
void clear_own(config::Nic& nic) {
  const config::Nic none;
  nic.pci = none.pci;
  nic.kernel_driver = none.kernel_driver;
  nic.mac = none.mac;
  nic.address = none.address;
  nic.gateway = none.gateway;
  nic.mtu_bytes = none.mtu_bytes;
  nic.numa_node = none.numa_node;
  nic.speed_mbps = none.speed_mbps;
  nic.gpu_pci = none.gpu_pci;
  nic.gpu_uuid = none.gpu_uuid;
  nic.memif_socket = none.memif_socket;
  nic.memif_id = none.memif_id;
  nic.tap_interface = none.tap_interface;
  nic.interface = none.interface;
  nic.device = none.device;
  nic.device_port = none.device_port;
}

}  // namespace

std::string short_hash(const std::string& text) {
  msg::Sha256 hash;
  hash.update(std::as_bytes(std::span(text)));
  std::string digits;
  const msg::Digest digest = hash.finish();
  for (const std::byte one : std::span(digest).first(6))
    digits += fmt::format("{:02x}", static_cast<unsigned>(one));
  return digits;
}

std::string shared_hash(config::Fabric fabric) {
  fabric.host = {};
  fabric.run_dir = config::kDefaultRunDir;
  fabric.path.clear();
  fabric.chosen_by.clear();
  fabric.poller.cpus.clear();
  for (config::Nic& nic : fabric.nics) clear_own(nic);
  return short_hash(config::to_toml(fabric));
}

}  // namespace ztcp::tools
