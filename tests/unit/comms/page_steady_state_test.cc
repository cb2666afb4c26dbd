// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Once connections and flows are listed, refreshing the statistics page allocates nothing.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/allocation_guard.h"
#include "tests/support/polling.h"
#include "tests/unit/comms/counting_backend.h"
#include "tests/unit/stats/page_fixture.h"
#include "tests/unit/ustack/memory_nics.h"
#include "transport/comms/connection_page.h"
#include "transport/stats/page_reader.h"
#include "transport/stats/process_page.h"

namespace ztcp::comms {
namespace {

using std::chrono::milliseconds;

stats::DeviceRecord device(const std::string& name) {
  stats::DeviceRecord record{};
  record.carrier = static_cast<std::uint32_t>(stats::Carrier::kUserspaceTcp);
  record.name.set(name);
  return record;
}

// A stream that goes on sending.
class BusyStream final : public Stream {
 public:
  std::size_t room() const override { return 0; }
  bool write(std::span<const std::byte>, std::span<const Fragment>) override { return false; }
  void finish() override {}
  void close() override {}
  void abort() override {}
  StreamStatistics stream_statistics(TimePoint) const override { return now; }
  StreamStatistics now;
};

// A connection of several flows, that also waits for credit now and then.
class Refreshing final : public Client {
 public:
  Refreshing(const LanePlace& place, std::uint16_t port)
      : page_(ConnectionPage::open(place, stats::Way::kSend, peer(port), 7)) {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      streams_[i].now.state = "ESTABLISHED";
      streams_[i].now.local = peer(static_cast<std::uint16_t>(i + 1));
      streams_[i].now.remote = peer(port);
      streams_[i].now.rtt = milliseconds(1);
    }
    for (int i = 0; i < 200; ++i) page_->add_latency(64, std::chrono::microseconds(50));
  }
  void on_doorbell(TimePoint) override {}
  void on_link_lost(TimePoint) override {}
  void on_peer_died(TimePoint, IpAddress, const std::string&) override {}
  void say_goodbye(TimePoint) override {}
  void cut_off() override {}
  void refresh_page(TimePoint now) override {
    page_->begin_round();
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      streams_[i].now.sent_bytes += 1000;
      ++streams_[i].now.zero_windows;
      page_->note_stream(now, i, streams_[i]);
    }
    wait_.set(now, !waits_);
    waits_ = !waits_;
    page_->note_credit(now, wait_);
    page_->refresh(now, {.state = "open", .bytes = 1000, .messages = ++messages_}, log_);
  }

 private:
  static Endpoint peer(std::uint16_t port) { return {IpAddress(Ipv4Address{0x0a000002}), port}; }
  std::unique_ptr<ConnectionPage> page_;
  std::array<BusyStream, 4> streams_;
  msg::CreditWait wait_;
  bool waits_ = false;
  std::uint64_t messages_ = 0;
  DeferredLog log_;
};

TEST(PageSteadyState, RoundsOfALaneAllocateNothing) {
  stats::PageFolder folder;
  const auto page = folder.create();
  page->add_device(device("ztcp0"));
  const LanePlace place = lane_place(page, "ztcp0", 0);
  int starts = 0;
  CountingBackend backend(starts);
  constexpr std::uint16_t kConnections = 70;  // More than a turn refreshes.
  for (std::uint16_t i = 0; i < kConnections; ++i)
    ASSERT_TRUE(backend.clients().attach(std::make_unique<Refreshing>(place, i + 100)));
  LanePage lane(place);
  LateTurns late_turns;
  TimePoint now{std::chrono::seconds(5)};
  const auto round = [&] {
    do lane.refresh(now, backend, late_turns, 3);
    while (lane.is_due(now));
    now += LanePage::kInterval;
  };
  round();
  AllocationGuard guard;
  for (int i = 0; i < 10; ++i) round();
  EXPECT_EQ(guard.count(), 0U);
  const auto snapshot = stats::read_page(folder.path() / page->file_name());
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->connections.size(), kConnections);
  EXPECT_EQ(snapshot->connections[0].messages, 11U);
  EXPECT_EQ(snapshot->flows.size(), 4U * kConnections);
}

// With its real threads, over userspace TCP in memory.
TEST(PageSteadyState, ConnectionsThatCarryMessagesAllocateNothing) {
  stats::PageFolder folder;
  const auto page = folder.create();
  for (const char* name : {"mem0", "mem1"}) page->add_device(device(name));
  stats::set_process_page(page);
  const auto oldest_refresh = [&] {
    const auto snapshot = stats::read_page(folder.path() / page->file_name());
    EXPECT_TRUE(snapshot);
    std::int64_t oldest = INT64_MAX;
    if (!snapshot || snapshot->flows.size() < 2) return std::int64_t{0};
    for (const stats::Connection& one : snapshot->connections)
      oldest = std::min(oldest, one.updated_monotonic_ns);
    return oldest;
  };
  {
    ustack::TwoHosts hosts;
    test::Pair pair = test::connect(hosts[0], hosts[1]);
    const test::Bytes sent = test::pattern(20'000, 1);
    test::Bytes received(sent.size());
    const auto carry_for = [&](Duration time) {
      const auto end = std::chrono::steady_clock::now() + time;
      bool is_good = true;
      while (is_good && std::chrono::steady_clock::now() < end) {
        const auto receiving = test::post_recv(*pair.receiver, received);
        Request* const sending = test::post_until_taken(*pair.sender, sent, nullptr);
        is_good = receiving && *receiving != nullptr && sending != nullptr &&
                  test::finish(**receiving) && test::finish(*sending);
      }
      return is_good;
    };
    do ASSERT_TRUE(carry_for(milliseconds(100)));
    while (oldest_refresh() == 0);
    const std::int64_t before = oldest_refresh();
    AllocationGuard guard;
    const bool is_good = carry_for(3 * LanePage::kInterval);
    const std::size_t allocated = guard.count();
    EXPECT_TRUE(is_good);
    EXPECT_EQ(allocated, 0U);
    EXPECT_GT(oldest_refresh(), before) << "the page was refreshed meanwhile";
  }
  stats::set_process_page(nullptr);
}

}  // namespace
}  // namespace ztcp::comms
