// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "config/file/ascii.h"
#include "config/file/fields.h"
#include "config/file/key_depth.h"
#include "config/file/key_text.h"
#include "config/file/load.h"
#include "config/file/parse_state.h"
#include "config/file/schema.h"
#include "config/file/syntax_text.h"

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
namespace {

constexpr const char* kSetUpAgain = "move it away: ztcp_setup then writes a complete one";

Position place_of(const toml::source_region& region) {
  return {static_cast<std::uint32_t>(region.begin.line),
          static_cast<std::uint32_t>(region.begin.column)};
}

// A value as the operator wrote it, for messages; cut if long.
std::string shown(const toml::node& node) {
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
    return parse(key, node, out, parse_ip_prefix);
  }
  bool convert(const Key& key, const toml::node& node, std::optional<Ipv4Address>& out) {
    if (const auto* text = node.as_string(); text != nullptr && text->get().empty()) return true;
    return parse(key, node, out, parse_ipv4);
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

// A newer file has other keys: reporting them would hide the one useful message.
bool is_newer(const toml::table& root, ParseState& state) {
  const auto* schema = root.get_as<std::int64_t>("schema");
  if (schema == nullptr || schema->get() <= static_cast<std::int64_t>(kSchemaVersion)) return false;
  state.findings.push_back({place_of(schema->source()),
                            fmt::format("written by a newer ztcp: schema {}, this one reads {}",
                                        schema->get(), kSchemaVersion),
                            "upgrade ztcp on this host; or move the file away, and ztcp_setup "
                            "writes one of its own"});
  return true;
}

void read_nics(const toml::table& root, ParseState& state) {
  const toml::node* node = root.get("nic");
  const auto* array = node != nullptr ? node->as_array() : nullptr;
  if (node != nullptr && array == nullptr) {
    state.findings.push_back({place_of(node->source()),
                              fmt::format("nic is {}, wanted [[nic]] tables", shown(*node)),
                              "write [[nic]] above the keys of each NIC"});
    return;
  }
  if (array == nullptr || array->empty()) {
    state.lacks_nics = true;
    state.findings.push_back({Position{}, "no NIC: the file has no [[nic]]", kSetUpAgain});
    return;
  }
  for (const toml::node& element : *array) {
    const auto* table = element.as_table();
    if (table == nullptr) {
      state.findings.push_back({place_of(element.source()),
                                fmt::format("nic holds {}, wanted [[nic]] tables", shown(element)),
                                "write [[nic]] above the keys of each NIC"});
      continue;
    }
    const std::string prefix = fmt::format("nic[{}]", state.fabric.nics.size());
    state.places.emplace(prefix, place_of(table->source()));
    TableReader reader(state, *table, "nic", prefix);
    visit_nic(state.fabric.nics.emplace_back(), reader);
    reader.report_unknown({});
  }
}

void read_root(const toml::table& root, ParseState& state) {
  if (is_newer(root, state)) return;
  TableReader top(state, root, "", "");
  visit_top(state.fabric, top);
  std::vector<std::string_view> tables;
  for (const Section& section : sections()) tables.push_back(section.name);
  top.report_unknown(tables);
  for_each_section(state.fabric, [&](std::string_view name, auto&& walk) {
    const toml::node* node = root.get(name);
    if (node == nullptr) return;
    const auto* table = node->as_table();
    if (table == nullptr) {
      state.findings.push_back(
          {place_of(node->source()),
           fmt::format("{} is {}, wanted a [{}] section", name, shown(*node), name),
           fmt::format("write [{}] on a line of its own", name)});
      return;
    }
    state.places.emplace(name, place_of(table->source()));
    TableReader reader(state, *table, name, std::string(name));
    walk(reader);
    reader.report_unknown({});
  });
  read_nics(root, state);
}

void resolve_paths(Fabric& fabric) {
  std::error_code ignored;
  const auto folder = std::filesystem::absolute(fabric.path, ignored).parent_path();
  const auto resolve = [&](std::string& path) {
    if (path.empty()) return;
    path = (folder / path).lexically_normal().string();
    // Set-up takes the part before the last slash as the parent folder.
    if (path.size() > 1 && path.ends_with('/')) path.pop_back();
  };
  resolve(fabric.run_dir);
  for (Nic& nic : fabric.nics) resolve(nic.memif_socket);
}

Finding syntax_fault(const toml::parse_result& parsed) {
  const toml::parse_error& error = parsed.error();
  return {place_of(error.source()), std::string(error.description()), "correct that line"};
}

// toml++ 3.3 has undefined behaviour when it tests whether a character beyond ASCII is a blank. So
// the text is parsed first with a '?' for each such character, which is no blank either and is
// allowed in the same places only.
std::optional<Finding> fault_beyond_ascii(std::string_view text) {
  const std::set<Position> places = places_beyond_ascii(text);
  if (places.empty()) return std::nullopt;
  const auto stray = [](const Position& place) {
    return Finding{place, "a character beyond ASCII outside comments and one-line strings",
                   "correct that line; names with such characters need quotes"};
  };
  // In a multi-line string a backslash and line ends may precede one, where toml++ looks for
  // blanks.
  const std::string ascii = in_ascii(text);
  if (ascii.find("\"\"\"") != ascii.npos || ascii.find("'''") != ascii.npos)
    return stray(*places.begin());
  const toml::parse_result parsed = toml::parse(ascii);
  if (parsed) return std::nullopt;
  const Finding fault = syntax_fault(parsed);
  return places.contains(fault.place) ? stray(fault.place) : fault;
}

}  // namespace

LoadResult too_large(const std::string& path) {
  return not_loaded(
      LoadFailure::kBroken, path,
      {path, fmt::format("larger than {} bytes, not a config file", kMaxFileBytes), kSetUpAgain});
}

LoadResult parse(std::string_view text, const std::string& path) {
  const auto where = [&](const Position& place) {
    return fmt::format("{}:{}:{}", path, place.line, place.column);
  };
  if (text.size() > kMaxFileBytes) return too_large(path);
  const auto not_toml = [&](const Finding& finding) {
    if (const auto plain = explain_syntax(text, finding.place))
      return not_loaded(LoadFailure::kBroken, path,
                        {where(plain->place), plain->what, plain->mend});
    return not_loaded(LoadFailure::kBroken, path,
                      {where(finding.place), "not TOML: " + finding.what, finding.mend});
  };
  if (const auto finding = why_not_text(text))
    return not_loaded(LoadFailure::kBroken, path,
                      {where(finding->place), finding->what, finding->mend});
  if (const auto place = place_too_deep(text))
    return not_toml({*place, fmt::format("more than {} dots outside of strings", kMostDots),
                     "correct that line"});
  if (const auto finding = fault_beyond_ascii(text)) return not_toml(*finding);
  const toml::parse_result parsed = toml::parse(text, std::string_view(path));
  if (!parsed) return not_toml(syntax_fault(parsed));

  ParseState state;
  state.fabric.path = path;
  read_root(parsed.table(), state);
  if (state.findings.empty() || state.lacks_nics) resolve_paths(state.fabric);
  if (state.fabric.schema == kSchemaVersion) validate(state);

  LoadResult result;
  result.path = path;
  result.failure = LoadFailure::kBroken;
  std::stable_sort(state.findings.begin(), state.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.place < b.place; });
  for (Finding& finding : state.findings)
    result.problems.push_back(
        {where(finding.place), std::move(finding.what), std::move(finding.mend)});
  if (result.problems.empty())
    result.fabric = std::move(state.fabric);
  else if (result.problems.size() == 1 && state.lacks_nics)
    result.without_nics = std::move(state.fabric);
  return result;
}

}  // namespace ztcp::config
