// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// F-RTO with SACK (RFC 5682 section 3.1): tells a spurious timeout by the two ACKs after it. For
// peers without timestamps, which give Eifel nothing to compare. Owned by a Sender.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "transport/tcp/seq_num.h"
#include "transport/wire/tcp_header.h"

namespace ztcp::tcp {

class Frto {
 public:
  // Step 1: the first timeout, upon which only the first segment is sent again. `end`: snd.max.
  void begin(SeqNum end) {
    step_ = Step::kFirstAck;
    end_ = end;
  }
  void stop() { step_ = Step::kOff; }

  // Between both ACKs new data is sent and nothing again: the next ACK shows whether the segments
  // of before are still arriving.
  bool holds_repeats() const { return step_ == Step::kSecondAck; }

  // True: the timeout was spurious. `advanced`: the ACK moved snd.una; `delivered_once`: it
  // reports a segment that was sent once; `may_send_new`: there is new data, and window for it.
  bool on_ack(SeqNum ack, std::span<const wire::SackBlock> sack, bool advanced, bool delivered_once,
              bool may_send_new) {
    if (step_ == Step::kOff) [[likely]]
      return false;
    const bool reaches_new =
        end_.at_or_before(ack) || std::ranges::any_of(sack, [&](const wire::SackBlock& block) {
          return SeqNum(block.end).after(end_);
        });
    if (step_ == Step::kFirstAck) {
      step_ = advanced && !reaches_new && may_send_new ? Step::kSecondAck : Step::kOff;
      return false;
    }
    stop();
    return delivered_once && !reaches_new;
  }

 private:
  enum class Step : std::uint8_t { kOff, kFirstAck, kSecondAck };

  Step step_ = Step::kOff;
  SeqNum end_;
};

}  // namespace ztcp::tcp
