// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The journal as JSON. A change that an older ztcp_setup would misread needs a new
// Journal::kSchema.
#include <exception>
#include <set>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/ztcp_setup/host/hex.h"
#include "tools/ztcp_setup/run/journal.h"

namespace ztcp::setup {
namespace {

using Json = nlohmann::ordered_json;

// Names and aliases of interfaces, and files, may contain any bytes; JSON only UTF-8.
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

std::string mode_text(std::uint32_t mode) { return fmt::format("{:04o}", mode); }
std::uint32_t mode_of(const Json& json) {
  const unsigned long mode = std::stoul(json.get<std::string>(), nullptr, 8);
  if (mode > 07777) throw std::runtime_error("no mode: " + json.get<std::string>());
  return static_cast<std::uint32_t>(mode);
}

class Writer final : public Fields {
 public:
  explicit Writer(Json& json) : json_(json) {}

  void text(const char* name, std::string& value) override { json_[name] = value; }
  void bytes(const char* name, std::string& value) override { json_[name] = bytes_json(value); }
  void flag(const char* name, bool& value) override { json_[name] = value; }
  void number(const char* name, std::uint32_t& value) override { json_[name] = value; }
  void mode(const char* name, std::uint32_t& value) override { json_[name] = mode_text(value); }
  void ownership(const char* name, Ownership& value) override {
    json_[name] = {{"mode", mode_text(value.mode)}, {"user", value.user}, {"group", value.group}};
  }
  void texts(const char* name, Texts& values) override { json_[name] = values; }
  void text_pairs(const char* name, TextPairs& pairs) override {
    add_pairs(name, pairs, [](const std::string& text) { return Json(text); });
  }
  void byte_pairs(const char* name, TextPairs& pairs) override {
    add_pairs(name, pairs, bytes_json);
  }
  void number_pairs(const char* name, NumberPairs& pairs) override {
    add_pairs(name, pairs, [](const auto& value) { return Json(value); });
  }
  void optional_number(const char* name, std::optional<std::uint32_t>& value) override {
    if (value) json_[name] = *value;
  }
  void optional_time(const char* name, std::int64_t& value) override {
    if (value != 0) json_[name] = value;
  }

 protected:
  void list(const char* name, Since, const Size& size, const Item& item) override {
    Json& list = json_[name] = Json::array();
    for (std::size_t i = 0; i < size(); ++i) {
      list.push_back(Json::object());
      Writer writer(list.back());
      item(i, writer);
    }
  }

 private:
  template <class Pairs, class ToJson>
  void add_pairs(const char* name, const Pairs& pairs, ToJson&& to_json) {
    Json& list = json_[name] = Json::array();
    for (const auto& [first, second] : pairs)
      list.push_back(Json::array({to_json(first), to_json(second)}));
  }

  Json& json_;
};

class Reader final : public Fields {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  void text(const char* name, std::string& value) override { json_.at(name).get_to(value); }
  void bytes(const char* name, std::string& value) override { value = bytes_of(json_.at(name)); }
  void flag(const char* name, bool& value) override { json_.at(name).get_to(value); }
  void number(const char* name, std::uint32_t& value) override { json_.at(name).get_to(value); }
  void mode(const char* name, std::uint32_t& value) override { value = mode_of(json_.at(name)); }
  void ownership(const char* name, Ownership& value) override {
    const Json& json = json_.at(name);
    value = {mode_of(json.at("mode")), json.at("user").get<std::uint32_t>(),
             json.at("group").get<std::uint32_t>()};
  }
  void texts(const char* name, Texts& values) override { json_.at(name).get_to(values); }
  void text_pairs(const char* name, TextPairs& pairs) override {
    for (const Json& one : json_.at(name))
      pairs.emplace_back(one.at(0).get<std::string>(), one.at(1).get<std::string>());
  }
  void byte_pairs(const char* name, TextPairs& pairs) override {
    for (const Json& one : json_.at(name))
      pairs.emplace_back(bytes_of(one.at(0)), bytes_of(one.at(1)));
  }
  void number_pairs(const char* name, NumberPairs& pairs) override {
    for (const Json& one : json_.at(name))
      pairs.emplace_back(one.at(0).get<std::string>(), one.at(1).get<std::uint32_t>());
  }
  void optional_number(const char* name, std::optional<std::uint32_t>& value) override {
    if (json_.contains(name)) value = json_.at(name).get<std::uint32_t>();
  }
  void optional_time(const char* name, std::int64_t& value) override {
    value = json_.value(name, std::int64_t{0});
  }

 protected:
  void list(const char* name, Since since, const Size&, const Item& item) override {
    if (since == Since::kNewer && !json_.contains(name)) return;
    std::size_t index = 0;
    for (const Json& one : json_.at(name)) {
      Reader reader(one);
      item(index++, reader);
    }
  }

 private:
  const Json& json_;
};

Json json_of(Entry entry) {
  Json resource{{"kind", kind_of(entry.resource)}};
  Writer writer(resource);
  fields_of(entry.resource, writer);
  Json before(nullptr);
  if (entry.before) {
    before = Json::object();
    Writer state(before);
    fields_of(*entry.before, state);
  }
  return {
      {"why", entry.resource.why}, {"done", entry.done}, {"wish", resource}, {"before", before}};
}

// One resource and, if `before` is an object, the state before it.
Entry entry_of(const Json& json) {
  const Json& wanted = json.at("wish");
  const Json& before = json.at("before");
  const auto kind = wanted.at("kind").get<std::string>();
  auto what = what_of_kind(kind);
  if (!what) throw std::runtime_error("unknown kind \"" + kind + "\"");
  Entry entry{{json.at("why").get<std::string>(), std::move(*what)},
              std::nullopt,
              json.at("done").get<bool>()};
  Reader reader(wanted);
  fields_of(entry.resource, reader);
  if (!before.is_object()) return entry;
  entry.before = before_of_kind(entry.resource);
  Reader state(before);
  fields_of(*entry.before, state);
  return entry;
}

}  // namespace

std::string journal_text(const JournalContent& content) {
  Json json{
      {"schema", Journal::kSchema}, {"complete", content.complete}, {"entries", Json::array()}};
  for (const Entry& entry : content.entries) json["entries"].push_back(json_of(entry));
  // Texts for people (why) may lose an invalid byte; data for undo is kept in hex if needed.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<JournalContent, config::Problem> read_journal(const std::string& text,
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
    std::set<std::string> keys;
    for (const Json& entry : json.at("entries")) {
      const Entry& read = content.entries.emplace_back(entry_of(entry));
      // Two equal keys would be treated as one, and one of them reverted twice.
      if (!keys.insert(key_of(read.resource)).second)
        throw std::runtime_error(key_of(read.resource) + " is listed twice");
      if (const auto* notice = std::get_if<resource::Notice>(&read.resource.what);
          notice != nullptr && (notice->argv.empty() || notice->argv.front().empty()))
        throw std::runtime_error("a notice names no program");
    }
    return content;
  } catch (const std::exception& error) {
    return refuse(fmt::format("can't be read: {}", error.what()),
                  fmt::format("it is needed for undo: restore it from a backup, or restore the "
                              "machine by hand with its help and remove {}",
                              path));
  }
}

}  // namespace ztcp::setup
