// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/pair_link.h"

#include <cstring>
#include <utility>

#include "tools/ztcp_perf/failure.h"

namespace ztcp::perf::probe {

PairLink::PairLink(Net& net, int device, std::function<void()> check)
    : net_(net),
      device_(device),
      check_(std::move(check)),
      output_(kMostBytes),
      input_(kMostBytes * kInFlight) {}

// Deregisters before closing, as NCCL does; also after an incomplete connect().
PairLink::~PairLink() {
  if (is_output_registered_) net_.dereg_mr(sender_, output_handle_);
  if (is_input_registered_) net_.dereg_mr(receiver_, input_handle_);
  if (sender_ != nullptr) net_.close_send(sender_);
  if (receiver_ != nullptr) net_.close_recv(receiver_);
  if (listener_ != nullptr) net_.close_listen(listener_);
}

Handle PairLink::listen() {
  Handle handle{};
  const ncclResult_t result = net_.listen(device_, handle.data(), &listener_);
  if (result != ncclSuccess) fail("listen on device {} failed: {}", device_, name_of(result));
  return handle;
}

void PairLink::connect(Handle peer) {
  // `peer` stays in place between calls: plugins keep the connect's state in it.
  while (sender_ == nullptr || receiver_ == nullptr) {
    if (sender_ == nullptr) {
      const ncclResult_t result = net_.connect(device_, peer.data(), &sender_);
      if (result != ncclSuccess) fail("connect failed: {}", name_of(result));
    }
    if (receiver_ == nullptr) {
      const ncclResult_t result = net_.accept(listener_, &receiver_);
      if (result != ncclSuccess) fail("accept failed: {}", name_of(result));
    }
    if (sender_ == nullptr || receiver_ == nullptr) idle();
  }
  net_.close_listen(std::exchange(listener_, nullptr));
  const auto add = [&](void* comm, Memory& memory, void** handle) {
    const auto bytes = memory.bytes();
    const ncclResult_t result = net_.reg_mr(comm, bytes.data(), bytes.size(), handle);
    if (result != ncclSuccess) fail("regMr of {} bytes failed: {}", bytes.size(), name_of(result));
    return true;
  };
  is_output_registered_ = add(sender_, output_, &output_handle_);
  is_input_registered_ = add(receiver_, input_, &input_handle_);
}

void PairLink::transfer(const Flow& sends, const Flow& receives) {
  Progress out{.flow = sends};
  Progress in{.flow = receives};
  idle_rounds_ = 0;
  while (!out.is_done() || !in.is_done()) {
    const bool received = advance_receives(in);
    const bool sent = advance_sends(out);
    if (received || sent) {
      idle_rounds_ = 0;
    } else {
      idle();
    }
  }
}

bool PairLink::advance_sends(Progress& sends) {
  bool moved = false;
  if (sends.may_post()) {
    void*& request = sends.requests[sends.posted % kInFlight];
    request = nullptr;
    const ncclResult_t result = net_.isend(sender_, output_.bytes().data(), sends.flow.bytes_each,
                                           /*tag=*/0, output_handle_, &request);
    if (result != ncclSuccess) fail("isend failed: {}", name_of(result));
    if (request != nullptr) {
      ++sends.posted;
      moved = true;
    }
  }
  if (sends.done < sends.posted) {
    int done = 0;
    int size = 0;
    const ncclResult_t result = net_.test(sends.requests[sends.done % kInFlight], &done, &size);
    if (result != ncclSuccess) fail("sending failed: {}", name_of(result));
    sends.done += done != 0;
    moved = moved || done != 0;
  }
  return moved;
}

bool PairLink::advance_receives(Progress& receives) {
  bool moved = false;
  if (receives.may_post()) {
    const std::size_t slot = receives.posted % kInFlight;
    const ReceivePart part{.data = input_.bytes().data() + slot * kMostBytes,
                           .size_bytes = kMostBytes,
                           .tag = 0,
                           .mhandle = input_handle_};
    receives.requests[slot] = nullptr;
    const ncclResult_t result = net_.irecv(receiver_, {&part, 1}, &receives.requests[slot]);
    if (result != ncclSuccess) fail("irecv failed: {}", name_of(result));
    if (receives.requests[slot] != nullptr) {
      ++receives.posted;
      moved = true;
    }
  }
  if (receives.done < receives.posted) {
    int done = 0;
    std::array<int, kMaxParts> sizes{};
    const ncclResult_t result =
        net_.test(receives.requests[receives.done % kInFlight], &done, sizes.data());
    if (result != ncclSuccess) fail("receiving failed: {}", name_of(result));
    if (done != 0 && static_cast<std::size_t>(sizes[0]) != receives.flow.bytes_each)
      fail("received {} bytes, {} were expected", sizes[0], receives.flow.bytes_each);
    receives.done += done != 0;
    moved = moved || done != 0;
  }
  return moved;
}

void PairLink::send(std::span<const std::byte> message) {
  std::memcpy(output_.bytes().data(), message.data(), message.size());
  transfer({1, message.size()}, {});
}

void PairLink::receive(std::span<std::byte> message) {
  transfer({}, {1, message.size()});
  std::memcpy(message.data(), input_.bytes().data(), message.size());
}

void PairLink::idle() {
  yielder_.yield();
  // Reads the clock only now and then: idle rounds determine latency.
  if (idle_rounds_++ % 64 != 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_check_) return;
  next_check_ = now + std::chrono::milliseconds(5);
  check_();
}

}  // namespace ztcp::perf::probe
