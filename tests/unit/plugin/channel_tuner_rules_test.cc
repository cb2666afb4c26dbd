// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Compares the tuner's answers with those stored for its rule's number: tests/data/tuner/README.md.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plugin/channel_tuner.h"

namespace ztcp::plugin::rules {
namespace {

constexpr std::size_t kAlgorithms = 7;
constexpr std::size_t kProtocols = 3;
constexpr int kNvls = 4;  // An algorithm unknown to the tuner.
using Table = std::array<float, kAlgorithms * kProtocols>;

struct Preference {
  const char* name;
  int algorithm;
  int protocol;
  bool has_others;  // Ring and tree with each protocol, at a higher cost.
};
constexpr Preference kPreferences[] = {
    {"ring-LL", NCCL_ALGO_RING, NCCL_PROTO_LL, true},
    {"ring-Simple", NCCL_ALGO_RING, NCCL_PROTO_SIMPLE, true},
    {"tree-LL", NCCL_ALGO_TREE, NCCL_PROTO_LL, true},
    {"tree-Simple", NCCL_ALGO_TREE, NCCL_PROTO_SIMPLE, true},
    {"PAT-Simple", NCCL_ALGO_PAT, NCCL_PROTO_SIMPLE, true},
    {"NVLS-Simple", kNvls, NCCL_PROTO_SIMPLE, true},
    {"ring-LL-alone", NCCL_ALGO_RING, NCCL_PROTO_LL, false},
};

Table costs_of(const Preference& preferred) {
  Table costs;
  costs.fill(-1);
  const auto at = [&](int algorithm, int protocol) -> float& {
    return costs[static_cast<std::size_t>(algorithm) * kProtocols +
                 static_cast<std::size_t>(protocol)];
  };
  if (preferred.has_others)
    for (const int algorithm : {NCCL_ALGO_TREE, NCCL_ALGO_RING})
      for (const int protocol : {NCCL_PROTO_LL, NCCL_PROTO_LL128, NCCL_PROTO_SIMPLE})
        at(algorithm, protocol) = 50;
  at(preferred.algorithm, preferred.protocol) = 20;
  return costs;
}

// Around every power of two and between them, up to 1 TiB.
std::set<std::size_t> sizes() {
  std::set<std::size_t> all{0};
  for (std::size_t power = 1; power <= std::size_t{1} << 40U; power *= 2)
    for (const std::size_t eighths : {8, 9, 10, 11, 12, 13, 14, 15}) {
      const std::size_t size = power / 8 * eighths;
      all.insert({size == 0 ? 0 : size - 1, size, power});
    }
  return all;
}

std::string answer(const ChannelTuner& tuner, ncclFunc_t collective, std::size_t bytes,
                   const Table& before) {
  Table costs = before;
  CostTable table(costs, kProtocols);
  std::string text = fmt::format("{}", tuner.tune(collective, bytes, table));
  bool bars_ll = false;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (costs[i] == before[i]) continue;
    bars_ll = true;
    EXPECT_EQ(i % kProtocols, std::size_t{NCCL_PROTO_LL}) << "no word for it in the table yet";
    EXPECT_EQ(costs[i], -1);
  }
  return bars_ll ? text + "-LL" : text;
}

std::string line_of(const ChannelTuner& tuner, ncclFunc_t collective, const Preference& preferred) {
  static const std::set<std::size_t> kSizes = sizes();
  const Table costs = costs_of(preferred);
  std::string line;
  std::string last = "0";
  for (const std::size_t bytes : kSizes) {
    const std::string now = answer(tuner, collective, bytes, costs);
    if (now != last) line += fmt::format(" {}:{}", bytes, now);
    last = now;
  }
  return line;
}

std::string table_of_rule() {
  struct Shape {
    std::size_t ranks, hosts;
  };
  constexpr Shape kShapes[] = {{1, 1},  {2, 1},   {2, 2},    {3, 3},     {3, 2},   {4, 4},
                               {4, 2},  {8, 8},   {8, 2},    {16, 2},    {64, 64}, {64, 8},
                               {32, 2}, {128, 2}, {512, 64}, {1024, 128}};
  const std::map<std::string, ncclFunc_t> collectives{{"broadcast", ncclFuncBroadcast},
                                                      {"reduce", ncclFuncReduce},
                                                      {"all-gather", ncclFuncAllGather},
                                                      {"reduce-scatter", ncclFuncReduceScatter},
                                                      {"all-reduce", ncclFuncAllReduce}};
  std::string table;
  for (const auto network :
       {TransportKind::kUstack, TransportKind::kSockets, TransportKind::kVerbs})
    for (const Shape& shape : kShapes) {
      const ChannelTuner tuner(network, shape.ranks, shape.hosts);
      for (const auto& [name, collective] : collectives)
        for (const Preference& preferred : kPreferences)
          if (const std::string line = line_of(tuner, collective, preferred); !line.empty())
            table += fmt::format("{}, {} ranks, {} hosts, {}, {}:{}\n", to_string(network),
                                 shape.ranks, shape.hosts, name, preferred.name, line);
    }
  return table;
}

// FNV-1a.
std::string digest_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  return fmt::format("{:016x}", hash);
}

std::filesystem::path path_of(int rule) {
  return std::filesystem::path(ZTCP_TUNER_RULES) / fmt::format("rule-{}.txt", rule);
}
const std::filesystem::path kDigests = std::filesystem::path(ZTCP_TUNER_RULES) / "digests.txt";

std::string read(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::map<int, std::string> stored_digests() {
  std::map<int, std::string> all;
  std::ifstream file(kDigests);
  int rule = 0;
  for (std::string digest; file >> rule >> digest;)
    EXPECT_TRUE(all.emplace(rule, digest).second) << "rule " << rule << " has two digests";
  return all;
}

// For developers that have increased the number of the rule.
void store(int rule, const std::string& table) {
  ASSERT_FALSE(stored_digests().contains(rule) || std::filesystem::exists(path_of(rule)))
      << "rule " << rule << " is stored: give ChannelTuner::kRule the next number";
  std::ofstream(path_of(rule)) << table;
  std::ofstream(kDigests, std::ios::app) << fmt::format("{} {}\n", rule, digest_of(table));
}

TEST(ChannelTuner, AnswersMatchTheStoredRule) {
  const std::string table = table_of_rule();
  // NOLINTNEXTLINE(concurrency-mt-unsafe): this test has one thread.
  if (std::getenv("STORE_TUNER_RULE") != nullptr) store(ChannelTuner::kRule, table);
  const auto digests = stored_digests();
  ASSERT_TRUE(digests.contains(ChannelTuner::kRule))
      << "rule " << int{ChannelTuner::kRule} << " is not stored: " << ZTCP_TUNER_RULES
      << "/README.md";
  EXPECT_EQ(digest_of(table), digests.at(ChannelTuner::kRule))
      << "the tuner's answers have changed and ChannelTuner::kRule has not: " << ZTCP_TUNER_RULES
      << "/README.md says what to do";
  EXPECT_EQ(digests.rbegin()->first, ChannelTuner::kRule) << "a higher number is stored";
}

TEST(ChannelTuner, StoredRulesMatchTheirDigests) {
  std::set<std::string> seen;
  for (const auto& [rule, digest] : stored_digests()) {
    EXPECT_EQ(digest_of(read(path_of(rule))), digest) << "rule " << rule;
    EXPECT_TRUE(seen.insert(digest).second) << "rule " << rule << " is another's";
  }
  EXPECT_FALSE(seen.empty());
}

}  // namespace
}  // namespace ztcp::plugin::rules
