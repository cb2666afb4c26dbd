// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Checks that this host's packet filter lets peers reach the ports that kernel NICs listen on, and
// those over which RDMA connections are negotiated. Reads only nft's tables, which current iptables
// uses, too; only root can read them.
#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "config/nic_interface.h"
#include "tools/ztcp_setup/check/checks.h"

namespace ztcp::setup {
namespace {

using config::Check;
using config::Severity;
using nlohmann::json;

constexpr Host::Seconds kNftLimit{10};

std::string text_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// Whether "7471", {"range": [7472, 7535]} or a {"set": [...]} of these contains all ports.
bool holds(const json& ports, int first, int last) {
  if (ports.is_number_integer()) return first == last && ports.get<int>() == first;
  if (!ports.is_object()) return false;
  if (const auto range = ports.find("range"); range != ports.end())
    return range->size() == 2 && (*range)[0].is_number_integer() &&
           (*range)[1].is_number_integer() && (*range)[0].get<int>() <= first &&
           (*range)[1].get<int>() >= last;
  const auto set = ports.find("set");
  return set != ports.end() && std::any_of(set->begin(), set->end(), [&](const json& one) {
           return holds(one, first, last);
         });
}

// Whether peers' packets match a rule's condition. Conditions on addresses count as matching: the
// operator wrote them for some peers.
bool fits(const json& match, const config::Nic& nic) {
  const json& left = match.value("left", json::object());
  const json& right = match.value("right", json());
  if (!left.is_object() || match.value("op", "==") != "==") return false;
  if (const auto payload = left.find("payload"); payload != left.end()) {
    const std::string field = text_at(*payload, "field");
    if (field == "dport") return holds(right, nic.first_port, nic.last_port);
    return field == "saddr" || field == "daddr";
  }
  const auto meta = left.find("meta");
  if (meta == left.end()) return false;
  const std::string key = text_at(*meta, "key");
  if (key == "iifname") return right == json(config::device_of(nic));
  return key == "l4proto" && right == json("tcp");
}

enum class Verdict : std::uint8_t { kNone, kLetsIn, kRefusesAll, kLeadsOn };

Verdict verdict_of(const json& rule, const config::Nic& nic) {
  bool meant = true;
  bool conditional = false;
  for (const json& part : rule.value("expr", json::array())) {
    if (!part.is_object()) continue;
    if (const auto match = part.find("match"); match != part.end()) {
      conditional = true;
      meant = meant && fits(*match, nic);
    }
    if (part.contains("jump") || part.contains("goto")) return Verdict::kLeadsOn;
    if (part.contains("accept")) return meant ? Verdict::kLetsIn : Verdict::kNone;
    if (part.contains("drop") || part.contains("reject"))
      return conditional ? Verdict::kNone : Verdict::kRefusesAll;
  }
  return Verdict::kNone;
}

bool is_of(const std::string& family, const config::Nic& nic) {
  return family == "inet" || family == (nic.address.address.is_v4() ? "ip" : "ip6");
}

// Formats "inet filter input".
std::string name_of(const json& chain, const char* key) {
  return fmt::format("{} {} {}", text_at(chain, "family"), text_at(chain, "table"),
                     text_at(chain, key));
}

// Whether the chain drops packets to the NIC's ports.
bool refuses(const json& objects, const json& chain, const config::Nic& nic) {
  for (const json& object : objects) {
    const auto rule = object.find("rule");
    if (rule == object.end() || name_of(*rule, "chain") != name_of(chain, "name")) continue;
    switch (verdict_of(*rule, nic)) {
      case Verdict::kLetsIn:
      case Verdict::kLeadsOn:
        return false;
      case Verdict::kRefusesAll:
        return true;
      case Verdict::kNone:
        break;
    }
  }
  return text_at(chain, "policy") == "drop";
}

Check good(const config::Nic& nic, std::string what) {
  return {"firewall", Severity::kGood, {nic.name, std::move(what), ""}};
}

}  // namespace

Check judge_ruleset(std::string_view text, const config::Nic& nic) {
  const json document = json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains("nftables"))
    return good(nic, "nft's rules are not readable here, so not judged");
  const json& objects = document["nftables"];
  for (const json& object : objects) {
    const auto chain = object.find("chain");
    if (chain == object.end() || text_at(*chain, "hook") != "input" ||
        !is_of(text_at(*chain, "family"), nic) || !refuses(objects, *chain, nic))
      continue;
    const std::string name = name_of(*chain, "name");
    return {"firewall",
            Severity::kWarning,
            {nic.name,
             fmt::format("nft's chain {} drops packets by default, and none of its rules accepts "
                         "TCP to the ports {}-{}",
                         name, nic.first_port, nic.last_port),
             fmt::format("sudo nft insert rule {} tcp dport {}-{} accept", name, nic.first_port,
                         nic.last_port)}};
  }
  return good(nic, fmt::format("no nft chain drops TCP to the ports {}-{}, judged by its own rules",
                               nic.first_port, nic.last_port));
}

std::vector<Check> check_firewall(const config::Fabric& fabric, Host& host) {
  std::vector<config::Nic> listening;
  for (const config::Nic& nic : fabric.nics) {
    if (nic.driver != config::NicDriver::kSocket && nic.driver != config::NicDriver::kVerbs)
      continue;
    listening.push_back(nic);
    // RDMA connections are negotiated over the interface that has the address.
    if (nic.driver == config::NicDriver::kVerbs)
      for (const LocalAddress& one : host.addresses())
        if (one.prefix.address == nic.address.address) listening.back().interface = one.interface;
  }
  std::vector<Check> checks;
  if (listening.empty() || !host.has_program("nft")) return checks;
  const auto told = host.run({"nft", "--json", "list", "ruleset"}, kNftLimit);
  const std::string text = told && told->exit_status == 0 ? told->output : std::string();
  for (const config::Nic& nic : listening) checks.push_back(judge_ruleset(text, nic));
  return checks;
}

}  // namespace ztcp::setup
