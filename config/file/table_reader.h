// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Reads one TOML table of the config into one struct of settings. The only file that includes
// toml++.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "config/file/fields.h"
#include "config/file/key_text.h"
#include "config/file/parse_state.h"
#include "config/schema.h"

// The packaged library is shared and throws; header-only it does neither.
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
// toml++ asserts that some malformed input ("[=") cannot occur, and with NDEBUG promises it to the
// optimiser. Neither may happen inside a training run: without both, its own error path handles
// such input.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(condition) static_assert(true)
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace ztcp::config {

inline Position place_of(const toml::source_region& region) {
  return {static_cast<std::uint32_t>(region.begin.line),
          static_cast<std::uint32_t>(region.begin.column)};
}

// A value as the operator wrote it, for messages; cut if long.
inline std::string shown(const toml::node& node) {
  if (const auto* text = node.as_string()) {
    std::string value = text->get();
    for (char& c : value)
      if (static_cast<unsigned char>(c) < 0x20) c = '?';
    if (value.size() > 80) value = value.substr(0, 77) + "...";
    return fmt::format("\"{}\"", value);
  }
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (node.is_array()) return "a list";
  return node.is_table() ? "a table" : "a date or time";
}

// Reads the keys of one table into the members of one struct, through visit_*().
class TableReader {
 public:
  // `prefix` names the table in ParseState::places ("tcp", "nic[0]"); `section` in the schema.
  TableReader(ParseState& state, const toml::table& table, std::string_view section,
              std::string prefix)
      : state_(state), table_(table), section_(section), prefix_(std::move(prefix)) {}

  template <class Member>
  void operator()(std::string_view name, Member& member) {
    const Key* key = find_key(section_, name);
    const toml::node* node = table_.get(name);
    if (node == nullptr) {
      if (key->required_for == "all") missing(*key);
      return;
    }
    if (convert(*key, *node, member))
      state_.places.emplace(full_name(prefix_, name), place_of(node->source()));
    else
      state_.faulty.insert(full_name(prefix_, name));
  }

  // `tables` are read elsewhere and are not unknown keys; only the top has some.
  void report_unknown(std::span<const std::string_view> tables) {
    for (const auto& [key, node] : table_) {
      const std::string_view name = key.str();
      if (std::find(tables.begin(), tables.end(), name) != tables.end()) continue;
      if (find_key(section_, name) == nullptr)
        unknown(key, node.is_table() || node.is_array_of_tables());
    }
  }

 private:
  bool convert(const Key& key, const toml::node& node, std::string& out) {
    const auto* text = node.as_string();
    if (text == nullptr) return wrong_type(key, node);
    if (text->get().find('\0') != std::string::npos)
      return fault(node, fmt::format("{} contains a NUL character", full_name(prefix_, key.name)),
                   mend_value(key));
    out = text->get();
    return true;
  }

  bool convert(const Key& key, const toml::node& node, bool& out) {
    const auto* flag = node.as_boolean();
    if (flag == nullptr) return wrong_type(key, node);
    out = flag->get();
    return true;
  }

  template <std::integral Number>
  bool convert(const Key& key, const toml::node& node, Number& out) {
    const auto* number = node.as_integer();
    if (const auto* text = node.as_string();
        text != nullptr && !key.choices.empty() && text->get() == key.choices) {
      out = 0;
      return true;
    }
    if (number == nullptr) return wrong_type(key, node);
    if (number->get() < key.min || number->get() > key.max)
      return fault(node,
                   fmt::format("{} = {} is outside {}..{}{}", full_name(prefix_, key.name),
                               number->get(), key.min, key.max, unit_of(key)),
                   mend_value(key));
    out = static_cast<Number>(number->get());
    return true;
  }

  bool convert(const Key& key, const toml::node& node, std::vector<std::uint32_t>& out) {
    const auto* list = node.as_array();
    if (list == nullptr) return wrong_type(key, node);
    std::vector<std::uint32_t> numbers;
    for (const toml::node& element : *list) {
      std::uint32_t number = 0;
      if (!convert(key, element, number)) return false;
      numbers.push_back(number);
    }
    out = std::move(numbers);
    return true;
  }

  template <class Enum>
  requires std::is_enum_v<Enum>
  bool convert(const Key& key, const toml::node& node, Enum& out) {
    const auto* text = node.as_string();
    if (text == nullptr) return wrong_type(key, node);
    const auto names = names_of(Enum{});
    const auto it = std::find(names.begin(), names.end(), text->get());
    if (it == names.end()) {
      const std::string_view meant = nearest(text->get(), names);
      return fault(
          node,
          fmt::format("{} = {} is not {}{}", full_name(prefix_, key.name), shown(node), wanted(key),
                      meant.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", meant)),
          mend_value(key));
    }
    out = static_cast<Enum>(it - names.begin());
    return true;
  }

  bool convert(const Key& key, const toml::node& node, MacAddress& out) {
    return parse(key, node, out, parse_mac);
  }
  bool convert(const Key& key, const toml::node& node, IpPrefix& out) {
    return parse(key, node, out, [](std::string_view text) -> std::optional<IpPrefix> {
      return text == "auto" ? std::optional(kAutoAddress) : parse_ip_prefix(text);
    });
  }
  bool convert(const Key& key, const toml::node& node, std::optional<IpAddress>& out) {
    if (const auto* text = node.as_string(); text != nullptr && text->get().empty()) return true;
    return parse(key, node, out, [](std::string_view text) -> std::optional<IpAddress> {
      if (text == "auto") return kAutoGateway;
      const auto address = parse_ip(text);
      return address != kAutoGateway ? address : std::nullopt;
    });
  }

  template <class Value, class Parse>
  bool parse(const Key& key, const toml::node& node, Value& out, Parse parse_text) {
    const auto* text = node.as_string();
    if (text == nullptr) return wrong_type(key, node);
    const auto value = parse_text(text->get());
    if (!value)
      return fault(
          node,
          fmt::format("{} = {} is not {}", full_name(prefix_, key.name), shown(node), key.form),
          mend_value(key));
    out = *value;
    return true;
  }

  bool wrong_type(const Key& key, const toml::node& node) {
    return fault(
        node,
        fmt::format("{} is {}, wanted {}", full_name(prefix_, key.name), shown(node), wanted(key)),
        mend_value(key));
  }

  void missing(const Key& key) {
    if (section_.empty() && key.name == "schema") {
      state_.findings.push_back({place_of(table_.source()), "schema is missing",
                                 fmt::format("add schema = {} as the first line", kSchemaVersion)});
      return;
    }
    state_.findings.push_back(
        {place_of(table_.source()), fmt::format("{} is missing", full_name(prefix_, key.name)),
         fmt::format("add {} = ... ({}): {}", key.name, wanted(key), key.meaning)});
  }

  void unknown(const toml::key& key, bool is_table) {
    const std::string_view name = key.str();
    std::vector<std::string_view> here;
    std::string elsewhere;
    for (const Key& known : keys()) {
      if (known.section == section_)
        here.push_back(known.name);
      else if (known.name == name)
        elsewhere = known.section == "nic"  ? "a [[nic]]"
                    : known.section.empty() ? "the top of the file"
                                            : fmt::format("[{}]", known.section);
    }
    if (section_.empty())
      for (const Section& section : sections()) here.push_back(section.name);
    std::string_view meant = nearest(name, here);
    // For "[TCP]", "[mesages]".
    const bool meant_section =
        is_table && section_.empty() &&
        std::any_of(sections().begin(), sections().end(),
                    [&](const Section& section) { return section.name == meant; });
    if (is_table && section_.empty() && !meant_section) meant = {};
    const std::string shown_meant = !meant_section   ? fmt::format("\"{}\"", meant)
                                    : meant == "nic" ? std::string("[[nic]]")
                                                     : fmt::format("[{}]", meant);
    std::string what = fmt::format("unknown key \"{}\"", full_name(prefix_, name.substr(0, 80)));
    if (!elsewhere.empty())
      what += fmt::format(", which belongs to {}", elsewhere);
    else if (!meant.empty())
      what += fmt::format(", did you mean {}?", shown_meant);
    std::string mend = !elsewhere.empty()
                           ? fmt::format("move it to {}", elsewhere)
                           : (meant.empty()   ? "remove the line; man ztcp.conf lists every key"
                              : meant_section ? fmt::format("write {}", shown_meant)
                                              : fmt::format("write {}, or remove the line", meant));
    state_.findings.push_back({place_of(key.source()), std::move(what), std::move(mend)});
  }

  bool fault(const toml::node& node, std::string what, std::string mend) {
    state_.findings.push_back({place_of(node.source()), std::move(what), std::move(mend)});
    return false;
  }

  ParseState& state_;
  const toml::table& table_;
  std::string_view section_;
  std::string prefix_;
};

}  // namespace ztcp::config
