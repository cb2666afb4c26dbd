// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/plan/instance_speed.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "config/machine/readings.h"

namespace ztcp::setup {
namespace {

struct Type {
  std::string_view name;
  std::uint32_t nic_mbps;
  std::uint32_t host_mbps;
};

// Amazon EC2 names the type in its firmware's tables, and its NICs report no speed. Google's
// (gVNIC) do report it; Azure, Alibaba and Tencent name no type there. Types with "up to" some Gb/s
// are left out: they only burst to that.
constexpr std::array kEc2Types{
    Type{"p3dn.24xlarge", 100'000, 100'000}, Type{"p4d.24xlarge", 100'000, 400'000},
    Type{"p4de.24xlarge", 100'000, 400'000}, Type{"p5.48xlarge", 100'000, 3'200'000},
    Type{"g4dn.8xlarge", 50'000, 50'000},    Type{"g4dn.12xlarge", 50'000, 50'000},
    Type{"g4dn.16xlarge", 50'000, 50'000},   Type{"g4dn.metal", 100'000, 100'000},
    Type{"g5.8xlarge", 25'000, 25'000},      Type{"g5.12xlarge", 40'000, 40'000},
    Type{"g5.16xlarge", 25'000, 25'000},     Type{"g5.24xlarge", 50'000, 50'000},
    Type{"g5.48xlarge", 100'000, 100'000},   Type{"g6.8xlarge", 25'000, 25'000},
    Type{"g6.12xlarge", 40'000, 40'000},     Type{"g6.16xlarge", 25'000, 25'000},
    Type{"g6.24xlarge", 50'000, 50'000},     Type{"g6.48xlarge", 100'000, 100'000},
    Type{"g6e.8xlarge", 25'000, 25'000},     Type{"g6e.12xlarge", 100'000, 100'000},
    Type{"g6e.16xlarge", 35'000, 35'000},    Type{"g6e.24xlarge", 100'000, 200'000},
    Type{"g6e.48xlarge", 100'000, 400'000},  Type{"p5e.48xlarge", 100'000, 3'200'000},
};

}  // namespace

std::uint32_t InstanceSpeed::share_mbps(std::size_t nics) const {
  const auto count = static_cast<std::uint32_t>(std::max<std::size_t>(nics, 1));
  return std::min(nic_mbps, host_mbps / count);
}

std::optional<InstanceSpeed> instance_speed(config::Machine& machine) {
  const std::string tables = "/sys/class/dmi/id/";
  if (config::read_line(machine, tables + "sys_vendor") != "Amazon EC2") return std::nullopt;
  const std::string product = config::read_line(machine, tables + "product_name").value_or("");
  const auto* const type = std::ranges::find(kEc2Types, product, &Type::name);
  if (type == kEc2Types.end()) return std::nullopt;
  return InstanceSpeed{product, type->nic_mbps, type->host_mbps};
}

}  // namespace ztcp::setup
