// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/interop/cable.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "transport/wire/ethernet.h"

namespace ztcp::interop {

TimePoint real_now() { return TimePoint(std::chrono::steady_clock::now().time_since_epoch()); }

TxFrame as_frame(std::span<const std::byte> bytes) {
  TxFrame frame;
  const std::size_t head = std::min(bytes.size(), std::size_t{TxFrame::kHeaderCapacity});
  std::copy_n(bytes.begin(), head, frame.header.begin());
  frame.header_bytes = static_cast<std::uint16_t>(head);
  frame.l2_bytes = wire::kEthernetBytes;
  if (bytes.size() > head) {
    frame.payload_bytes = static_cast<std::uint32_t>(bytes.size() - head);
    frame.fragments[0] = {bytes.data() + head, frame.payload_bytes, kUnmapped};
    frame.fragment_count = 1;
  }
  return frame;
}

void forward(link::Link& from, link::Link& to) {
  std::array<RxFrame, 32> burst;
  const std::size_t arrived = from.receive(burst);
  for (std::size_t i = 0; i < arrived; ++i) {
    const TxFrame frame = as_frame(burst[i].head);
    to.transmit({&frame, 1});
  }
  from.release(std::span(burst).first(arrived));
}

std::size_t Cable::receive(std::span<RxFrame> frames) {
  send_due();
  std::array<RxFrame, 32> burst;
  const std::size_t arrived = inner_->receive(burst);
  for (std::size_t i = 0; i < arrived; ++i) {
    sim::Bytes bytes(burst[i].head.begin(), burst[i].head.end());
    if (observer_) observer_(false, bytes);
    in_.send(real_now(), std::move(bytes));
  }
  inner_->release(std::span(burst).first(arrived));

  std::size_t count = 0;
  while (count < frames.size() && in_.next_arrival() <= real_now()) {
    auto frame = std::make_unique<sim::ReceivedFrame>(in_.take());
    frames[count++] = frame->view();
    received_.emplace(frame.get(), std::move(frame));
  }
  return count;
}

void Cable::release(std::span<RxFrame> frames) {
  for (const RxFrame& frame : frames)
    if (!frame.kept) received_.erase(frame.handle);
}

std::size_t Cable::transmit(std::span<const TxFrame> frames) {
  for (const TxFrame& frame : frames) {
    for (sim::Bytes& bytes : sim::put_on_cable(frame)) {
      if (observer_) observer_(true, bytes);
      out_.send(real_now(), std::move(bytes));
    }
  }
  send_due();
  return frames.size();
}

void Cable::send_due() {
  while (out_.next_arrival() <= real_now()) {
    const sim::Bytes bytes = out_.take();
    const TxFrame frame = as_frame(bytes);
    // A full tap counts as one more loss.
    inner_->transmit({&frame, 1});
  }
}

}  // namespace ztcp::interop
