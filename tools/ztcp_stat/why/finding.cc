// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/why/finding.h"

namespace ztcp::stat {

const char* name_of(Rule rule) {
  switch (rule) {
    case Rule::kStopped:
      return "stopped";
    case Rule::kCrashed:
      return "crashed";
    case Rule::kLinkLost:
      return "link_lost";
    case Rule::kLinkDown:
      return "link_down";
    case Rule::kDescriptors:
      return "descriptors";
    case Rule::kQuota:
      return "cpu_quota";
    case Rule::kStrangers:
      return "strangers";
    case Rule::kLimit:
      return "connection_limit";
    case Rule::kUnreachable:
      return "unreachable";
    case Rule::kSilent:
      return "silent_peer";
    case Rule::kDrops:
      return "nic_drops";
    case Rule::kDamaged:
      return "damaged_frames";
    case Rule::kTimeouts:
      return "timeouts";
    case Rule::kLosses:
      return "losses";
    case Rule::kMtu:
      return "small_mtu";
    case Rule::kLate:
      return "late_threads";
    case Rule::kZeroWindow:
      return "zero_window";
    case Rule::kSlowDevice:
      return "slow_device";
    case Rule::kSlowPeer:
      return "slow_peer";
    case Rule::kNoReceive:
      return "no_receive";
    case Rule::kNoData:
      return "no_data";
    case Rule::kApplication:
      return "application";
    case Rule::kDamagedPage:
      return "damaged_page";
  }
  return "unknown";
}

const char* name_of(Severity severity) {
  switch (severity) {
    case Severity::kNote:
      return "note";
    case Severity::kWarning:
      return "warning";
    case Severity::kSevere:
      return "severe";
  }
  return "unknown";
}

}  // namespace ztcp::stat
