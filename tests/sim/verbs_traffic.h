// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Applications on both ends of a verbs connection that post all that they may, in groups of any
// tags, and check the received bytes: each message arrives once, whole, in its buffer, and no byte
// of a buffer changes after its completion.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/verbs_connection.h"

namespace ztcp::sim {

// A connection's shape, for tests that run with several.
struct Shape {
  const char* name;
  std::vector<std::uint32_t> rails;  // By queue pair.
  std::vector<std::uint32_t> rates_mbps{};
  std::vector<std::uint32_t> tcp_rails{};
};

// Byte `at` of message `n` of a tag.
inline std::byte byte_of(std::uint64_t n, int tag, std::size_t at) {
  return static_cast<std::byte>(n * 7 + static_cast<std::uint64_t>(tag) * 31 + at * 3 + at / 256);
}

class Traffic {
 public:
  Traffic(const Setup& setup, std::size_t buffers)
      : connection_(setup), has_gpu_memory_(setup.has_gpu_memory), to_post_(buffers) {
    connection_.wire.right.on_write = [this](const std::byte* to, std::size_t size) {
      check_write(to, size);
    };
  }

  // Called before each event.
  std::function<void(Connection&)> before_event = [](Connection&) {};
  const std::string& problem() const { return problem_; }
  bool has_gone_by_tcp() const { return connection_.has_gone_by_tcp; }

  void run() {
    for (std::size_t idle = 0; idle < 10'000 && !is_over() && problem_.empty(); ++idle) {
      before_event(connection_);
      switch (connection_.wire.draw() % 4) {
        case 0:
          post_receive();
          break;
        case 1:
          post_send();
          break;
        case 2:
          ASSERT_TRUE(connection_.poll_both());
          look();
          break;
        default:
          if (connection_.step()) idle = 0;
      }
      ASSERT_EQ(connection_.wire.problem(), "");
    }
    EXPECT_EQ(problem_, "");
    EXPECT_TRUE(is_over()) << "stuck with " << sends_.size() << " sends and " << posts_.size()
                           << " posts";
  }

 private:
  struct Buffer {
    Bytes bytes;
    int tag = 0;
    std::uint64_t number = 0;  // Among those of its tag.
    std::size_t sent_bytes = 0;
  };

  bool is_over() const {
    return to_post_ == 0 && to_send_.empty() && sends_.empty() && posts_.empty() &&
           connection_.is_quiet();
  }

  std::size_t draw_size() {
    const std::size_t top = std::size_t{1} << connection_.wire.draw() % 19;
    return std::min(connection_.wire.draw() % (2 * top), kMaxBytes);
  }

  std::uint32_t draw_flags() {
    const std::uint32_t polled = connection_.wire.draw() % 2 == 0 ? verbs::Slot::kPolled : 0U;
    return polled | (has_gpu_memory_ && connection_.wire.draw() % 4 == 0 ? 0U : verbs::Slot::kHost);
  }

  void post_receive() {
    verbs::RecvSession& receiver = *connection_.receiver;
    const std::uint16_t number = receiver.next_number();
    if (to_post_ == 0 || !receiver.can_post() || posts_.contains(number)) return;
    const std::size_t count = std::min<std::size_t>(to_post_, 1 + connection_.wire.draw() % 8);
    to_post_ -= count;
    std::vector<Buffer>& group = posts_[number];
    std::vector<verbs::RecvSession::Buffer> buffers;
    for (std::size_t i = 0; i < count; ++i) {
      Buffer& buffer = group.emplace_back();
      buffer.tag = static_cast<int>(connection_.wire.draw() % 5) - 2;
      buffer.number = next_number_[buffer.tag]++;
      buffer.sent_bytes = draw_size();
      buffer.bytes.resize(buffer.sent_bytes + connection_.wire.draw() % 100);
      to_send_[buffer.tag].push_back(buffer.sent_bytes);
      buffers.push_back({reinterpret_cast<std::uint64_t>(buffer.bytes.data()), &kPayloadKeys,
                         static_cast<std::uint32_t>(buffer.bytes.size()), buffer.tag,
                         draw_flags()});
    }
    for (const Buffer& buffer : group)
      connection_.wire.right.memory.push_back(
          {buffer.bytes.data(), buffer.bytes.size(), kPayloadKeys});
    ASSERT_TRUE(receiver.post(buffers));
  }

  // In any order of tags, also before the slot has come.
  void post_send() {
    if (to_send_.empty()) return;
    std::uint16_t number = 0;
    while (sends_.contains(number)) ++number;
    if (number >= verbs::SendSession::kMessages) return;
    auto chosen = to_send_.begin();
    std::advance(chosen, connection_.wire.draw() % to_send_.size());
    const int tag = chosen->first;
    const std::uint64_t n = next_sent_[tag];
    Bytes& bytes = filled_[tag];
    if (bytes.empty()) {
      bytes.resize(chosen->second.front());
      for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte_of(n, tag, i);
    }
    const auto taken =
        connection_.sender->post(number, {.bytes = bytes,
                                          .tag = tag,
                                          .lkeys = &kLocalKeys,
                                          .is_host = !has_gpu_memory_ || n % 3 != 0});
    ASSERT_TRUE(taken);
    if (!*taken) return;
    ++next_sent_[tag];
    sends_[number] = std::move(bytes);
    filled_.erase(tag);
    chosen->second.pop_front();
    if (chosen->second.empty()) to_send_.erase(chosen);
  }

  void look() {
    for (auto it = sends_.begin(); it != sends_.end();) {
      Bytes& bytes = it->second;
      if (!connection_.sender->is_done(it->first)) {
        ++it;
        continue;
      }
      // NCCL reuses it; a late read would send these bytes.
      std::fill(bytes.begin(), bytes.end(), std::byte{0xee});
      graveyard_.push_back(std::move(bytes));
      it = sends_.erase(it);
    }
    for (auto it = posts_.begin(); it != posts_.end();) {
      if (!connection_.receiver->is_done(it->first)) {
        ++it;
        continue;
      }
      for (std::size_t i = 0; i < it->second.size(); ++i) check(it->first, i, it->second[i]);
      it = posts_.erase(it);
    }
  }

  void check(std::uint16_t number, std::size_t i, Buffer& buffer) {
    if (connection_.receiver->received_bytes(number, i) != buffer.sent_bytes)
      problem_ = "another size than was sent";
    for (std::size_t at = 0; at < buffer.bytes.size(); ++at)
      if (buffer.bytes[at] !=
          (at < buffer.sent_bytes ? byte_of(buffer.number, buffer.tag, at) : std::byte{}))
        problem_ = "wrong bytes";
    std::erase_if(connection_.wire.right.memory, [&](const Registered& one) {
      return one.rkeys == kPayloadKeys && one.begin == buffer.bytes.data();
    });
    graveyard_.push_back(std::move(buffer.bytes));
  }

  // The wire has checked that it is registered memory; this checks that its post is not done.
  void check_write(const std::byte* to, std::size_t size) {
    for (const auto& [number, group] : posts_)
      for (const Buffer& buffer : group)
        if (to >= buffer.bytes.data() && to + size <= buffer.bytes.data() + buffer.bytes.size() &&
            connection_.receiver->is_done(number))
          problem_ = "a write into a buffer that is done";
  }

  Connection connection_;
  const bool has_gpu_memory_;
  std::size_t to_post_;
  std::map<int, std::deque<std::size_t>> to_send_;  // Sizes of messages, by tag.
  std::map<int, std::uint64_t> next_number_;
  std::map<int, std::uint64_t> next_sent_;
  std::map<int, Bytes> filled_;  // The next of each tag, if the sender did not take it at first.
  std::map<std::uint16_t, std::vector<Buffer>> posts_;
  std::map<std::uint16_t, Bytes> sends_;
  std::vector<Bytes> graveyard_;  // Kept, so that late writes hit memory that is checked.
  std::string problem_;
};

}  // namespace ztcp::sim
