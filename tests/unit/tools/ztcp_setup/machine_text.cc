// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/unit/tools/ztcp_setup/machine_text.h"

#include <array>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/ztcp_setup/host/hex.h"
#include "tools/ztcp_setup/run/journal.h"

namespace ztcp::setup::test {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::pair<FileKind, const char*>, 4> kKinds{{{FileKind::kFile, "file"},
                                                                  {FileKind::kFolder, "folder"},
                                                                  {FileKind::kLink, "link"},
                                                                  {FileKind::kOther, "node"}}};

const char* word_of(FileKind kind) {
  for (const auto& [one, word] : kKinds)
    if (one == kind) return word;
  throw std::logic_error("a machine has no such files");
}

// Texts may contain invalid UTF-8.
Json text_json(const std::string& text) {
  try {
    static_cast<void>(Json(text).dump());
    return text;
  } catch (const Json::exception&) {
    return Json{{"hex", to_hex(text)}};
  }
}
std::string text_in(const Json& json) {
  return json.is_string() ? json.get<std::string>() : from_hex(json.at("hex").get<std::string>());
}

Json json_of(const std::vector<NetworkItem>& items) {
  Json json = Json::array();
  for (const NetworkItem& item : items)
    json.push_back({text_json(item.command), item.message, item.expires_unix_s});
  return json;
}
std::vector<NetworkItem> items_in(const Json& json) {
  std::vector<NetworkItem> items;
  for (const Json& one : json)
    items.push_back(
        {text_in(one.at(0)), one.at(1).get<std::string>(), one.at(2).get<std::int64_t>()});
  return items;
}

Json json_of(const InterfaceState& link) {
  Json json{{"name", link.name},
            {"mac", {link.mac, link.permanent_mac}},
            {"mtu", link.mtu_bytes},
            {"queue", link.queue_length},
            {"alias", text_json(link.alias)},
            {"master", link.master},
            {"up", link.up},
            {"kind", {link.kind, link.info}},
            {"addresses", json_of(link.addresses)},
            {"neighbours", json_of(link.neighbours)},
            {"routes", json_of(link.routes)},
            {"sysctls", link.sysctls},
            {"settings", Json::array()},
            {"children", Json::array()}};
  for (const SettingGroup& group : link.settings)
    json["settings"].push_back({group.name, group.values});
  for (const InterfaceState& child : link.children) json["children"].push_back(json_of(child));
  return json;
}
InterfaceState link_in(const Json& json) {
  InterfaceState link;
  json.at("name").get_to(link.name);
  json.at("mac").at(0).get_to(link.mac);
  json.at("mac").at(1).get_to(link.permanent_mac);
  json.at("mtu").get_to(link.mtu_bytes);
  json.at("queue").get_to(link.queue_length);
  link.alias = text_in(json.at("alias"));
  json.at("master").get_to(link.master);
  json.at("up").get_to(link.up);
  json.at("kind").at(0).get_to(link.kind);
  json.at("kind").at(1).get_to(link.info);
  link.addresses = items_in(json.at("addresses"));
  link.neighbours = items_in(json.at("neighbours"));
  link.routes = items_in(json.at("routes"));
  json.at("sysctls").get_to(link.sysctls);
  for (const Json& group : json.at("settings")) {
    link.settings.push_back({group.at(0).get<std::string>(), {}});
    group.at(1).get_to(link.settings.back().values);
  }
  for (const Json& child : json.at("children")) link.children.push_back(link_in(child));
  return link;
}

FakeHost::Node node_in(const Json& json) {
  FakeHost::Node node;
  for (const auto& [kind, word] : kKinds)
    if (json.at(0) == word) node.kind = kind;
  node.ownership = {
      static_cast<std::uint32_t>(std::stoul(json.at(2).get<std::string>(), nullptr, 8)),
      json.at(3).get<std::uint32_t>(), json.at(4).get<std::uint32_t>()};
  node.text = text_in(json.at(5));
  return node;
}

}  // namespace

Lines lines_of(const FakeHost::State& state) {
  Lines lines;
  const auto add = [&](const Json& json) { lines.insert(json.dump()); };
  for (const auto& [path, node] : state.nodes)
    if (path != Journal::kPath)
      add({word_of(node.kind), path, fmt::format("{:04o}", node.ownership.mode),
           node.ownership.user, node.ownership.group, text_json(node.text)});
  for (const auto& [path, value] : state.values) add({"value", path, value});
  for (const auto& [pci, nic] : state.nics) {
    add({"nic", pci, nic.id, nic.home_driver, nic.group, json_of(nic.pristine)});
    add({"driver", pci, nic.driver, nic.driver_override});
  }
  for (const auto& [name, link] : state.links) add({"interface", json_of(link)});
  for (const std::string& module : state.modules) add({"module", module});
  for (const auto& [folder, what] : state.mounts) add({"mount", folder, what});
  for (const auto& [kernel, arguments] : state.boot) add({"boot", kernel, arguments});
  add({"boot of new kernels", state.boot_of_new_kernels});
  for (const std::string& unit : state.enabled) add({"enabled", unit});
  add({"largest pages", state.largest_pages});
  return lines;
}

FakeHost::State state_of(const Lines& lines) {
  FakeHost::State state;
  for (const std::string& line : lines) {
    const Json json = Json::parse(line);
    const auto verb = json.at(0).get<std::string>();
    const auto word = [&](std::size_t i) { return json.at(i).get<std::string>(); };
    if (verb == "value") {
      state.values[word(1)] = word(2);
    } else if (verb == "nic") {
      FakeHost::Nic& nic = state.nics[word(1)];
      nic.pci = word(1);
      nic.id = word(2);
      nic.home_driver = word(3);
      nic.group = word(4);
      nic.pristine = link_in(json.at(5));
    } else if (verb == "driver") {
      state.nics[word(1)].driver = word(2);
      state.nics[word(1)].driver_override = word(3);
    } else if (verb == "interface") {
      InterfaceState link = link_in(json.at(1));
      state.links[link.name] = std::move(link);
    } else if (verb == "module") {
      state.modules.insert(word(1));
    } else if (verb == "mount") {
      state.mounts[word(1)] = word(2);
    } else if (verb == "boot") {
      state.boot[word(1)] = word(2);
    } else if (verb == "boot of new kernels") {
      state.boot_of_new_kernels = word(1);
    } else if (verb == "enabled") {
      state.enabled.insert(word(1));
    } else if (verb == "largest pages") {
      json.at(1).get_to(state.largest_pages);
    } else {
      state.nodes[word(1)] = node_in(json);
    }
  }
  return state;
}

}  // namespace ztcp::setup::test
