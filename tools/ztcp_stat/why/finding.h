// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A fault or peculiarity that two looks show, as `ztcp_stat why` prints it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ztcp::stat {

enum class Severity : std::uint8_t { kNote, kWarning, kSevere };

// One for each kind of finding. Among equally severe findings the earlier kind is ranked first:
// causes stand before their symptoms.
enum class Rule : std::uint8_t {
  kStopped,      // A process is stopped or its threads do not run.
  kCrashed,      // A process died without ending.
  kLinkLost,     // A NIC was removed.
  kLinkDown,     // A NIC has no carrier.
  kDescriptors,  // The descriptor table is nearly full.
  kQuota,        // A cgroup's CPU quota stops the process.
  kStrangers,    // Connections with a wrong cookie or key.
  kLimit,        // The connection limit is reached.
  kUnreachable,  // Connects fail, flows break.
  kSilent,       // A peer acknowledges nothing.
  kDrops,        // The NIC or its pool drops frames.
  kDamaged,      // Frames arrive damaged.
  kTimeouts,     // Retransmission timeouts.
  kLosses,       // The network loses frames.
  kMtu,          // Packets are smaller than the device's MTU.
  kLate,         // This host's CPUs are busy with something else.
  kZeroWindow,   // A peer's TCP has closed its window.
  kSlowDevice,   // One NIC among several is slower.
  kSlowPeer,     // One host among several is slower.
  kNoReceive,    // A peer posts no receive.
  kNoData,       // A peer sends nothing.
  kApplication,  // This process posts nothing.
  kDamagedPage,  // A page can't be read.
};

struct Finding {
  Severity severity = Severity::kNote;
  Rule rule = Rule::kStopped;
  std::string subject;  // "peer gpu-07", "ztcp0 of process 4242".
  std::string text;     // A sentence with values, without the subject.
  std::string command;  // The command that shows more or helps; empty: none.
  double weight = 0;    // The larger one of two findings of a rule is worse.
};
using Findings = std::vector<Finding>;

// "stopped": a word for scripts.
const char* name_of(Rule rule);
// "severe".
const char* name_of(Severity severity);

}  // namespace ztcp::stat
