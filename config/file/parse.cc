// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "config/file/fields.h"
#include "config/file/key_text.h"
#include "config/file/load.h"
#include "config/file/parse_state.h"
#include "config/file/raw_text.h"
#include "config/file/syntax_text.h"
#include "config/file/table_reader.h"
#include "config/schema.h"

namespace ztcp::config {
namespace {

constexpr const char* kSetUpAgain = "move it away: ztcp_setup then writes a complete one";

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
