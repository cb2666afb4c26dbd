// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Compares two parses of a frame's headers in the fields that their kind says are valid.
#pragma once

#include <algorithm>

#include "transport/wire/frame_parser.h"

namespace ztcp::wire {

inline bool same_headers(const ParsedFrame& a, const ParsedFrame& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == FrameKind::kMalformed) return true;
  const EthernetHeader& ea = a.ethernet;
  const EthernetHeader& eb = b.ethernet;
  if (a.payload_offset != b.payload_offset || a.payload_bytes != b.payload_bytes ||
      ea.destination != eb.destination || ea.source != eb.source || ea.vlan_id != eb.vlan_id ||
      ea.type != eb.type || ea.header_bytes != eb.header_bytes)
    return false;
  if (a.kind == FrameKind::kArp || a.kind == FrameKind::kForeign) return true;
  const IpHeader& ia = a.ip;
  const IpHeader& ib = b.ip;
  if (ia.source != ib.source || ia.destination != ib.destination || ia.protocol != ib.protocol ||
      ia.ecn != ib.ecn || ia.dscp != ib.dscp || ia.hop_limit != ib.hop_limit ||
      ia.total_bytes != ib.total_bytes || ia.header_bytes != ib.header_bytes)
    return false;
  if (a.kind != FrameKind::kTcp) return true;
  const TcpHeader& ta = a.tcp;
  const TcpHeader& tb = b.tcp;
  return ta.source_port == tb.source_port && ta.destination_port == tb.destination_port &&
         ta.sequence == tb.sequence && ta.acknowledgment == tb.acknowledgment &&
         ta.window == tb.window && ta.flags == tb.flags && ta.header_bytes == tb.header_bytes &&
         ta.options.timestamps == tb.options.timestamps &&
         ta.options.mss_bytes == tb.options.mss_bytes &&
         ta.options.window_scale == tb.options.window_scale &&
         ta.options.ecn_bytes == tb.options.ecn_bytes &&
         ta.options.sack_permitted == tb.options.sack_permitted &&
         std::ranges::equal(ta.options.sack_blocks(), tb.options.sack_blocks());
}

}  // namespace ztcp::wire
