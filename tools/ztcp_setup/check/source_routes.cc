// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whether packets to peers in other networks leave through the interface with the NIC's address. A
// cloud drops those that leave through another one, and only source routing (ip rule) prevents
// that.
#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "config/nic_interface.h"
#include "tools/ztcp_setup/check/checks.h"

namespace ztcp::setup {
namespace {

constexpr Host::Seconds kIpLimit{10};

// Documentation addresses (RFC 5737, RFC 3849); at least one is outside every network here.
constexpr std::array kNobodysV4 = {"192.0.2.1", "198.51.100.1", "203.0.113.1"};
constexpr std::array kNobodysV6 = {"2001:db8::1", "2001:db8:ffff::1"};

std::string outside_of(const std::vector<LocalAddress>& addresses, bool is_v4) {
  const auto is_outside = [&](const char* text) {
    const IpAddress nobody = *parse_ip(text);
    return std::none_of(addresses.begin(), addresses.end(),
                        [&](const LocalAddress& one) { return one.prefix.contains(nobody); });
  };
  if (is_v4) {
    const auto* const found = std::find_if(kNobodysV4.begin(), kNobodysV4.end(), is_outside);
    return found == kNobodysV4.end() ? "" : *found;
  }
  const auto* const found = std::find_if(kNobodysV6.begin(), kNobodysV6.end(), is_outside);
  return found == kNobodysV6.end() ? "" : *found;
}

config::Check told(const config::Nic& nic, std::string what) {
  return {"route", config::Severity::kGood, {nic.name, std::move(what), ""}};
}

}  // namespace

config::Check judge_route(std::string_view answer, const config::Nic& nic) {
  const std::string device = config::device_of(nic);
  const auto json = nlohmann::json::parse(answer, nullptr, false);
  const bool has_way =
      json.is_array() && !json.empty() && json[0].is_object() && json[0].contains("dev");
  if (!has_way || !json[0]["dev"].is_string())
    return told(nic, fmt::format("reaches its own network {} only: no route leads further",
                                 to_string(nic.address)));
  const auto way = json[0]["dev"].get<std::string>();
  if (way == device)
    return told(nic, fmt::format("peers in other networks are reached through {}, too", device));
  return told(
      nic, fmt::format("peers outside {0} would be reached through {1}, not through {2}; clouds "
                       "drop such packets. Where the job has such peers: sudo ip{3} rule add from "
                       "{4} table 100 && sudo ip{3} route add default via GATEWAY dev {2} table "
                       "100, and a table for each such NIC",
                       to_string(nic.address), way, device,
                       nic.address.address.is_v4() ? "" : " -6", to_string(nic.address.address)));
}

std::vector<config::Check> check_source_routes(const config::Fabric& fabric, Host& host) {
  std::vector<config::Check> checks;
  if (!host.has_program("ip")) return checks;
  const auto addresses = host.addresses();
  for (const config::Nic& nic : fabric.nics) {
    const IpAddress own = nic.address.address;
    const bool is_on_one_link =
        own.is_link_local_v6() || (own.is_v4() && own.v4().value >> 24 == 127);
    const std::string nobody = outside_of(addresses, own.is_v4());
    if (nic.driver != config::NicDriver::kSocket || is_on_one_link || nobody.empty()) continue;
    const auto answer =
        host.run({"ip", "-json", "route", "get", nobody, "from", to_string(own)}, kIpLimit);
    if (answer) checks.push_back(judge_route(answer->exit_status == 0 ? answer->output : "", nic));
  }
  return checks;
}

}  // namespace ztcp::setup
