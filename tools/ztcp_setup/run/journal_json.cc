// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The journal as JSON. A change that an older ztcp_setup would misread is a new Journal::kSchema.
#include <exception>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/ztcp_setup/host/hex.h"
#include "tools/ztcp_setup/run/journal.h"

namespace ztcp::setup {
namespace {

using Json = nlohmann::ordered_json;

// Files, names and aliases of interfaces hold any bytes, JSON only UTF-8.
Json bytes_json(const std::string& bytes) {
  try {
    static_cast<void>(Json(bytes).dump());
    return bytes;
  } catch (const Json::exception&) {
    return Json{{"hex", to_hex(bytes)}};
  }
}
std::string bytes_of(const Json& json) {
  return json.is_string() ? json.get<std::string>() : from_hex(json.at("hex").get<std::string>());
}

Json json_of(const Ownership& who) {
  return {{"mode", fmt::format("{:04o}", who.mode)}, {"user", who.user}, {"group", who.group}};
}
Ownership ownership_of(const Json& json) {
  return {static_cast<std::uint32_t>(std::stoul(json.at("mode").get<std::string>(), nullptr, 8)),
          json.at("user").get<std::uint32_t>(), json.at("group").get<std::uint32_t>()};
}

std::uint32_t mode_of(const Json& json) {
  return static_cast<std::uint32_t>(std::stoul(json.at("mode").get<std::string>(), nullptr, 8));
}

Json json_of(const NetworkItem& item) {
  Json json{{"command", bytes_json(item.command)}, {"message", item.message}};
  if (item.expires_unix_s != 0) json["expires_unix_s"] = item.expires_unix_s;
  return json;
}
Json json_of(const std::vector<NetworkItem>& items) {
  Json json = Json::array();
  for (const NetworkItem& item : items) json.push_back(json_of(item));
  return json;
}
std::vector<NetworkItem> items_of(const Json& json) {
  std::vector<NetworkItem> items;
  for (const Json& one : json)
    items.push_back({bytes_of(one.at("command")), one.at("message").get<std::string>(),
                     one.value("expires_unix_s", std::int64_t{0})});
  return items;
}

Json json_of(const SettingGroup& group) {
  Json json{{"group", group.name}, {"values", Json::array()}};
  for (const auto& [name, value] : group.values) json["values"].push_back({name, value});
  return json;
}
SettingGroup group_of(const Json& json) {
  SettingGroup group{json.at("group").get<std::string>(), {}};
  for (const Json& one : json.at("values"))
    group.values.emplace_back(one.at(0).get<std::string>(), one.at(1).get<std::uint32_t>());
  return group;
}

Json json_of(const LinkState& link) {
  Json json{{"name", bytes_json(link.name)},
            {"mac", link.mac},
            {"permanent_mac", link.permanent_mac},
            {"mtu_bytes", link.mtu_bytes},
            {"queue_length", link.queue_length},
            {"alias", bytes_json(link.alias)},
            {"master", bytes_json(link.master)},
            {"up", link.up},
            {"kind", link.kind},
            {"info", link.info},
            {"addresses", json_of(link.addresses)},
            {"neighbours", json_of(link.neighbours)},
            {"routes", json_of(link.routes)},
            {"sysctls", Json::array()},
            {"settings", Json::array()},
            {"children", Json::array()}};
  for (const auto& [path, value] : link.sysctls)
    json["sysctls"].push_back({bytes_json(path), bytes_json(value)});
  for (const SettingGroup& group : link.settings) json["settings"].push_back(json_of(group));
  for (const LinkState& child : link.children) json["children"].push_back(json_of(child));
  return json;
}
LinkState link_of(const Json& json) {
  LinkState link;
  link.name = bytes_of(json.at("name"));
  link.mac = json.at("mac").get<std::string>();
  link.permanent_mac = json.at("permanent_mac").get<std::string>();
  link.mtu_bytes = json.at("mtu_bytes").get<std::uint32_t>();
  link.queue_length = json.at("queue_length").get<std::uint32_t>();
  link.alias = bytes_of(json.at("alias"));
  link.master = bytes_of(json.at("master"));
  link.up = json.at("up").get<bool>();
  link.kind = json.at("kind").get<std::string>();
  link.info = json.at("info").get<std::string>();
  link.addresses = items_of(json.at("addresses"));
  link.neighbours = items_of(json.at("neighbours"));
  link.routes = items_of(json.at("routes"));
  for (const Json& one : json.at("sysctls"))
    link.sysctls.emplace_back(bytes_of(one.at(0)), bytes_of(one.at(1)));
  // Not in schema 1.
  for (const Json& one : json.value("settings", Json::array()))
    link.settings.push_back(group_of(one));
  for (const Json& child : json.at("children")) link.children.push_back(link_of(child));
  return link;
}

std::string mode_text(std::uint32_t mode) { return fmt::format("{:04o}", mode); }

Json with(Json json, const wish::Ids& ids) {
  if (ids.user) json["user_id"] = *ids.user;
  if (ids.group) json["group_id"] = *ids.group;
  return json;
}
wish::Ids ids_of(const Json& json) {
  wish::Ids ids;
  if (json.contains("user_id")) ids.user = json.at("user_id").get<std::uint32_t>();
  if (json.contains("group_id")) ids.group = json.at("group_id").get<std::uint32_t>();
  return ids;
}

struct WishToJson {
  Json operator()(const wish::File& file) const {
    return with({{"kind", "file"},
                 {"path", file.path},
                 {"text", bytes_json(file.text)},
                 {"mode", mode_text(file.mode)},
                 {"group", file.group}},
                file.ids);
  }
  Json operator()(const wish::Folder& folder) const {
    return with({{"kind", "folder"},
                 {"path", folder.path},
                 {"mode", mode_text(folder.mode)},
                 {"user", folder.user},
                 {"group", folder.group}},
                folder.ids);
  }
  Json operator()(const wish::Value& value) const {
    return {{"kind", "value"},
            {"path", value.path},
            {"value", value.value},
            {"at_least", value.at_least}};
  }
  Json operator()(const wish::Module& module) const {
    return {{"kind", "module"}, {"name", module.name}};
  }
  Json operator()(const wish::Mount& mount) const {
    return {
        {"kind", "mount"}, {"path", mount.path}, {"type", mount.type}, {"options", mount.options}};
  }
  Json operator()(const wish::Driver& driver) const {
    return {{"kind", "driver"}, {"pci", driver.pci}, {"driver", driver.driver}};
  }
  Json operator()(const wish::Access& access) const {
    return with({{"kind", "access"},
                 {"pci", access.pci},
                 {"mode", mode_text(access.mode)},
                 {"user", access.user},
                 {"group", access.group}},
                access.ids);
  }
  Json operator()(const wish::Unit& unit) const { return {{"kind", "unit"}, {"name", unit.name}}; }
  Json operator()(const wish::BootArguments& boot) const {
    return {{"kind", "boot_arguments"}, {"arguments", boot.arguments}};
  }
  Json operator()(const wish::Notice& notice) const {
    return {{"kind", "notice"}, {"argv", notice.argv}};
  }
};

struct BeforeToJson {
  Json operator()(const before::File& file) const {
    Json json{{"existed", file.existed}, {"made_folders", file.made_folders}};
    if (file.existed) {
      json["text"] = bytes_json(file.text);
      json["ownership"] = json_of(file.ownership);
    }
    return json;
  }
  Json operator()(const before::Folder& folder) const {
    Json json{{"existed", folder.existed}, {"made_folders", folder.made_folders}};
    if (folder.existed) json["ownership"] = json_of(folder.ownership);
    return json;
  }
  Json operator()(const before::Value& value) const {
    return {{"value", value.value}, {"reached", value.reached}};
  }
  Json operator()(const before::Module&) const { return Json::object(); }
  Json operator()(const before::Mount& mount) const {
    return {{"made_folders", mount.made_folders}};
  }
  Json operator()(const before::Driver& driver) const {
    Json json{{"id", driver.id},
              {"driver", driver.driver},
              {"driver_override", driver.driver_override},
              {"links", Json::array()}};
    for (const LinkState& link : driver.links) json["links"].push_back(json_of(link));
    return json;
  }
  Json operator()(const before::Access& access) const {
    return {{"ownership", json_of(access.ownership)}};
  }
  Json operator()(const before::Unit&) const { return Json::object(); }
  Json operator()(const before::BootArguments& boot) const {
    Json json{{"arguments_of", Json::array()}};
    for (const auto& [kernel, arguments] : boot.arguments_of)
      json["arguments_of"].push_back({kernel, arguments});
    return json;
  }
  Json operator()(const before::Notice& notice) const { return {{"due", notice.due}}; }
};

// One wish and, when `was` is an object, the state before it.
Entry entry_of(const Json& json) {
  const Json& wished = json.at("wish");
  const Json& was = json.at("before");
  const auto kind = wished.at("kind").get<std::string>();
  const auto text = [&](const char* key) { return wished.at(key).get<std::string>(); };
  const auto folders = [&] { return was.at("made_folders").get<std::vector<std::string>>(); };
  Entry entry;
  entry.wish.why = json.at("why").get<std::string>();
  entry.done = json.at("done").get<bool>();
  Before before;
  if (kind == "file") {
    entry.wish.what = wish::File{text("path"), bytes_of(wished.at("text")), mode_of(wished),
                                 text("group"), ids_of(wished)};
    if (was.is_object()) {
      before::File file{was.at("existed").get<bool>(), {}, {}, folders()};
      if (file.existed) {
        file.text = bytes_of(was.at("text"));
        file.ownership = ownership_of(was.at("ownership"));
      }
      before = std::move(file);
    }
  } else if (kind == "folder") {
    entry.wish.what =
        wish::Folder{text("path"), mode_of(wished), text("user"), text("group"), ids_of(wished)};
    if (was.is_object()) {
      before::Folder folder{was.at("existed").get<bool>(), {}, folders()};
      if (folder.existed) folder.ownership = ownership_of(was.at("ownership"));
      before = std::move(folder);
    }
  } else if (kind == "value") {
    entry.wish.what = wish::Value{text("path"), text("value"), wished.at("at_least").get<bool>()};
    if (was.is_object())
      before =
          before::Value{was.at("value").get<std::string>(), was.at("reached").get<std::string>()};
  } else if (kind == "module") {
    entry.wish.what = wish::Module{text("name")};
    before = before::Module{};
  } else if (kind == "mount") {
    entry.wish.what = wish::Mount{text("path"), text("type"), text("options")};
    if (was.is_object()) before = before::Mount{folders()};
  } else if (kind == "driver") {
    entry.wish.what = wish::Driver{text("pci"), text("driver")};
    if (was.is_object()) {
      before::Driver driver{was.at("id").get<std::string>(),
                            was.at("driver").get<std::string>(),
                            was.at("driver_override").get<std::string>(),
                            {}};
      for (const Json& link : was.at("links")) driver.links.push_back(link_of(link));
      before = std::move(driver);
    }
  } else if (kind == "access") {
    entry.wish.what =
        wish::Access{text("pci"), text("user"), text("group"), mode_of(wished), ids_of(wished)};
    if (was.is_object()) before = before::Access{ownership_of(was.at("ownership"))};
  } else if (kind == "unit") {
    entry.wish.what = wish::Unit{text("name")};
    before = before::Unit{};
  } else if (kind == "boot_arguments") {
    entry.wish.what = wish::BootArguments{wished.at("arguments").get<std::vector<std::string>>()};
    before::BootArguments boot;
    if (was.is_object())
      for (const Json& one : was.at("arguments_of"))
        boot.arguments_of.emplace_back(one.at(0).get<std::string>(), one.at(1).get<std::string>());
    before = std::move(boot);
  } else if (kind == "notice") {
    entry.wish.what = wish::Notice{wished.at("argv").get<std::vector<std::string>>()};
    if (was.is_object()) before = before::Notice{was.at("due").get<bool>()};
  } else {
    throw std::runtime_error("unknown kind \"" + kind + "\"");
  }
  if (was.is_object()) entry.before = std::move(before);
  return entry;
}

}  // namespace

std::string journal_text(const JournalContent& content) {
  Json json{
      {"schema", Journal::kSchema}, {"complete", content.complete}, {"entries", Json::array()}};
  for (const Entry& entry : content.entries)
    json["entries"].push_back(
        {{"why", entry.wish.why},
         {"done", entry.done},
         {"wish", std::visit(WishToJson{}, entry.wish.what)},
         {"before", entry.before ? std::visit(BeforeToJson{}, *entry.before) : Json(nullptr)}});
  // What people read (why) may lose a byte; what undo needs is kept in hex where need be.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

tl::expected<JournalContent, config::Problem> read_journal(const std::string& text,
                                                           const std::string& path) {
  const auto refuse = [&](std::string what, std::string mend) {
    return tl::unexpected(config::Problem{path, std::move(what), std::move(mend)});
  };
  try {
    const Json json = Json::parse(text);
    const int schema = json.at("schema").get<int>();
    if (schema > Journal::kSchema)
      return refuse(fmt::format("was written by a newer ztcp_setup: schema {}, this one reads {}",
                                schema, Journal::kSchema),
                    "use the ztcp_setup that wrote it, or a newer one");
    JournalContent content;
    content.complete = json.at("complete").get<bool>();
    for (const Json& entry : json.at("entries")) content.entries.push_back(entry_of(entry));
    return content;
  } catch (const std::exception& error) {
    return refuse(fmt::format("can't be read: {}", error.what()),
                  fmt::format("it tells how to undo: restore it from a backup, or put the machine "
                              "right by hand after it and remove {}",
                              path));
  }
}

}  // namespace ztcp::setup
