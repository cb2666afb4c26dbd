// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/job/facts.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/ztcp_perf/failure.h"
#include "transport/transport.h"

namespace ztcp::perf::job {
namespace {

constexpr std::array kTransports = {TransportKind::kUstack, TransportKind::kSockets,
                                    TransportKind::kVerbs};

void add(std::vector<std::string>& list, std::string text) {
  if (std::ranges::find(list, text) == list.end()) list.push_back(std::move(text));
}

// The text after the last "; chosen by " up to the next part of the line; empty: there is none.
std::string chooser_in(const std::string& line) {
  constexpr std::string_view kBefore = "; chosen by ";
  const std::size_t at = line.rfind(kBefore);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + kBefore.size();
  return line.substr(begin, line.find(';', begin) - begin);
}

}  // namespace

nlohmann::json to_json(const RankFacts& f) {
  return {{"host", f.host},
          {"machine", f.machine},
          {"version", f.version},
          {"variables", f.variables},
          {"library", f.library},
          {"digest", f.digest},
          {"table", f.table},
          {"problem", f.problem},
          {"mend", f.mend},
          {"has_started", f.has_started},
          {"transport", f.transport},
          {"reason", f.reason},
          {"nics", f.nics},
          {"lines", f.lines},
          {"cpus", f.cpus},
          {"plain_address", f.plain_address},
          {"plain_reason", f.plain_reason}};
}

RankFacts facts_of(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  RankFacts f;
  try {
    const auto read = [&json](const char* name, auto& value) { json.at(name).get_to(value); };
    read("host", f.host);
    read("machine", f.machine);
    read("version", f.version);
    read("variables", f.variables);
    read("library", f.library);
    read("digest", f.digest);
    read("table", f.table);
    read("problem", f.problem);
    read("mend", f.mend);
    read("has_started", f.has_started);
    read("transport", f.transport);
    read("reason", f.reason);
    read("nics", f.nics);
    read("lines", f.lines);
    read("cpus", f.cpus);
    read("plain_address", f.plain_address);
    read("plain_reason", f.plain_reason);
  } catch (const nlohmann::json::exception&) {
    fail("a rank told malformed facts about itself");
  }
  return f;
}

void read_lines(RankFacts& facts, const std::string& demanded, const std::string& config) {
  std::vector<std::string> transports;
  std::vector<std::string> reasons;
  if (!demanded.empty()) add(reasons, "ZTCP_TRANSPORT=" + demanded);
  for (const std::string& line : facts.lines) {
    for (const TransportKind kind : kTransports) {
      // "0.1.0 ztcp0: userspace TCP, ..."
      const std::size_t at = line.find(fmt::format(": {}, ", to_string(kind)));
      if (at == std::string::npos) continue;
      const std::size_t space = line.rfind(' ', at);
      add(facts.nics, line.substr(space + 1, at - space - 1));
      add(transports, to_string(kind));
      if (std::string by = chooser_in(line); !by.empty()) add(reasons, std::move(by));
      break;
    }
  }
  if (!config.empty() && demanded.empty()) add(reasons, config);
  facts.transport = fmt::format("{}", fmt::join(transports, " and "));
  facts.reason = fmt::format("{}", fmt::join(reasons, "; "));
}

std::vector<std::vector<int>> ranks_by_host(const std::vector<RankFacts>& ranks) {
  std::vector<std::vector<int>> hosts;
  std::map<std::string, std::size_t> places;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto [place, is_new] = places.emplace(ranks[rank].machine, hosts.size());
    if (is_new) hosts.emplace_back();
    hosts[place->second].push_back(static_cast<int>(rank));
  }
  return hosts;
}

std::string rank_list(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (i > 0) text += ", ";
    text += std::to_string(ranks[i]);
    if (end - i > 1) text += fmt::format("-{}", ranks[end - 1]);
    i = end;
  }
  return text;
}

}  // namespace ztcp::perf::job
