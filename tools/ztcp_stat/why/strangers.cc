// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Connections that are not made: wrong cookies and keys, limits, unreachable hosts, broken flows.
#include <fmt/format.h>

#include "tools/ztcp_stat/view/units.h"
#include "tools/ztcp_stat/why/case.h"

namespace ztcp::stat {
namespace {

using stats::Counter;

// A job connects in its first minutes. Refusals stay a fault for this long after its start, since
// nothing is counted any more when the job waits.
constexpr std::int64_t kStartNs = 600'000'000'000;

struct RefusalRule {
  Counter counter;
  Rule rule;
  const char* text;
  const char* command;
};
constexpr RefusalRule kRefusals[] = {
    {Counter::kWrongCookies, Rule::kStrangers,
     "connections with a wrong cookie: another job or an old process has an address of this one",
     "ss -tnp  # connections to this process"},
    {Counter::kWrongKeys, Rule::kStrangers,
     "connections with a wrong cluster key: the hosts' configs differ",
     "ztcp_setup --check  # on both hosts"},
    {Counter::kStrangers, Rule::kStrangers,
     "connections without a valid hello: a port scan, or another version of ztcp",
     "ztcp_setup --version  # on both hosts"},
    {Counter::kRefusedFull, Rule::kLimit,
     "connections because the limit of connections is reached (tcp.max_connections)",
     "man 5 ztcp.conf  # max_connections"},
};
struct BrokenRule {
  Counter counter;
  const char* text;
};
constexpr BrokenRule kBroken[] = {
    {Counter::kArpUnresolved,
     "connects without an ARP reply: the host is down, or in another "
     "network"},
    {Counter::kConnectionsFailed, "failed connections"},
    {Counter::kRedials, "flows that broke and were dialled again"},
    {Counter::kLostRails, "rails that failed: messages went over the others"},
    {Counter::kNoAnswers,
     "work requests that a peer's NIC did not answer: packets are lost (PFC, ECN, MTU), or its "
     "port or host is down"},
    {Counter::kRefusedAccess,
     "work requests that a NIC refused: a rank was aborted, or freed its buffers"},
};

}  // namespace

void find_strangers(const Case& one, Findings& findings) {
  const stats::Process& process = one.now().process;
  const bool is_starting = one.now_realtime_ns - process.started_realtime_ns < kStartNs;
  for (const stats::Device& device : one.now().devices) {
    for (const RefusalRule& refusal : kRefusals) {
      const std::uint64_t recent = one.window.count(device, refusal.counter);
      std::uint64_t all = 0;
      for (const stats::Lane& lane : one.now().lanes)
        if (lane.device == device.index) all += lane.counters[refusal.counter];
      if (all == 0) continue;
      const bool is_fault = recent > 0 || is_starting;
      findings.push_back({is_fault ? Severity::kWarning : Severity::kNote, refusal.rule,
                          device_name(one, device),
                          fmt::format("has rejected {} {}; {} of them in the last {}", all,
                                      refusal.text, recent, seconds_text(one.window.seconds())),
                          refusal.command, static_cast<double>(recent)});
    }
  }
}

void find_broken(const Case& one, Findings& findings) {
  for (const stats::Device& device : one.now().devices) {
    for (const BrokenRule& broken : kBroken) {
      const std::uint64_t recent = one.window.count(device, broken.counter);
      if (recent == 0) continue;
      findings.push_back({Severity::kWarning, Rule::kUnreachable, device_name(one, device),
                          fmt::format("had {} {} in the last {}", recent, broken.text,
                                      seconds_text(one.window.seconds())),
                          "ztcp_setup --check; the job's log names the peer",
                          static_cast<double>(recent)});
    }
  }
}

}  // namespace ztcp::stat
