// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A host on which the plugin starts; tests break one thing each.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/result.h"
#include "plugin/startup.h"
#include "tests/support/log_capture.h"
#include "tests/support/memif_fabric.h"
#include "tests/support/memory_transport.h"

namespace ztcp::plugin {

class StartupTest : public testing::Test {
 protected:
  Told<Startup> start() {
    return start_up({.load =
                         [this](const std::string& path) {
                           loaded_.path = path;
                           return loaded_;
                         },
                     .check_host = [this](const config::Fabric&) { return host_problems_; },
                     .transports = sources_,
                     .open_page = open_page_},
                    environment_, "host-a");
  }

  static Created create(const config::Fabric& fabric, TransportKind kind,
                        const std::optional<Error>& error) {
    if (error) return in_words(tl::unexpected<Error>(*error));
    std::vector<DeviceProperties> devices(fabric.nics.size());
    for (std::size_t i = 0; i < devices.size(); ++i) {
      devices[i].name = fabric.nics[i].name;
      devices[i].mtu_bytes = fabric.nics[i].mtu_bytes;
      devices[i].address = "10.0.0.1";
      devices[i].numa_node = 1;
      devices[i].gpu = fabric.nics[i].gpu_pci;
    }
    return std::make_unique<test::MemoryTransport>(std::move(devices), kind);
  }

  // Two interfaces, or the error.
  Result<config::Fabric, std::string> over_interfaces(config::Fabric settings) {
    if (!interfaces_error_.empty()) return tl::unexpected(interfaces_error_);
    settings.chosen_by = "NCCL_SOCKET_IFNAME=eth";
    for (const char* name : {"eth0", "eth1"}) {
      settings.nics.emplace_back();
      settings.nics.back().name = name;
      settings.nics.back().driver = config::NicDriver::kTap;
    }
    return settings;
  }

  void ask_for(config::TransportRequest request, std::string text) {
    environment_.transport = request;
    environment_.transport_text = std::move(text);
  }

  void break_config(config::LoadFailure failure, config::Problems problems) {
    loaded_.fabric.reset();
    loaded_.failure = failure;
    loaded_.problems = std::move(problems);
  }

  config::LoadResult loaded_{test::memif_fabric(), {}, {}, {}};
  config::Problems host_problems_;
  std::optional<Error> transport_error_;
  std::string interfaces_error_;
  std::vector<TransportSource> sources_ = {
      {.kind = TransportKind::kUstack,
       .carries = [](const config::Nic& nic) { return nic.driver != config::NicDriver::kTap; },
       .is_tunable =
           [](const config::Fabric& fabric) { return fabric.nics.front().nccl_devices > 1; },
       .create =
           [this](const config::Fabric& fabric) {
             return create(fabric, TransportKind::kUstack, transport_error_);
           },
       .find_nics = nullptr}};
  std::function<void(const config::Fabric&, std::uint64_t)> open_page_;
  config::Environment environment_;
  test::LogCapture log_;
};

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

inline std::vector<std::string> names_of(const Startup& startup) {
  std::vector<std::string> names;
  for (const Device& device : startup.devices) names.push_back(device.properties.name);
  return names;
}

}  // namespace ztcp::plugin
