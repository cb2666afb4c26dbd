// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/hosts/report.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/common/printable.h"
#include "tools/ztcp_stat/hosts/normal.h"

namespace ztcp::stat::hosts {
namespace {

using Json = nlohmann::ordered_json;

std::string text_in(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_string()) return {};
  return tools::printable(found->get_ref<const std::string&>());
}

Check check_of(const Json& json, const char* name) {
  const std::string severity = text_in(json, "severity");
  return {.name = name != nullptr ? name : text_in(json, "name"),
          .where = without_addresses(text_in(json, "where")),
          .severity = severity == "ok"        ? Severity::kGood
                      : severity == "warning" ? Severity::kWarning
                                              : Severity::kFault,
          .what = without_addresses(text_in(json, "what"))};
}

}  // namespace

const char* name_of(Severity severity) {
  switch (severity) {
    case Severity::kGood:
      return "ok";
    case Severity::kWarning:
      return "warning";
    case Severity::kFault:
      break;
  }
  return "fault";
}

tl::expected<Report, std::string> parse_report(std::string host, std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return tl::unexpected(std::string("it is empty: the command failed on that host"));
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto problems = json.is_object() ? json.find("problems") : json.end();
  if (!json.is_object() || problems == json.end() || !problems->is_array())
    return tl::unexpected(std::string("it is not a report of ztcp_setup --check --json"));
  const std::string mode = text_in(json, "mode");
  if (!mode.empty() && mode != "check")
    return tl::unexpected(
        fmt::format("it is a report of another action ({}), not of ztcp_setup --check", mode));
  Report report{std::move(host), {}};
  for (const Json& problem : *problems)
    if (problem.is_object()) report.checks.push_back(check_of(problem, "problem"));
  if (const auto checks = json.find("checks"); checks != json.end() && checks->is_array())
    for (const Json& check : *checks)
      if (check.is_object()) report.checks.push_back(check_of(check, nullptr));
  return report;
}

}  // namespace ztcp::stat::hosts
