// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The fixture of all these tests: our Stack on one end of a tap, the kernel on the other, both in
// the test's own network and driven by one thread. Real time, bounded.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/interop/cable.h"
#include "tests/interop/kernel_app.h"
#include "tests/interop/network.h"
#include "tests/sim/app.h"
#include "transport/link/tap_link.h"
#include "transport/tcp/stack.h"

namespace ztcp::interop {

using namespace std::chrono_literals;

inline constexpr const char* kInterface = "interop0";
inline constexpr Ipv4Prefix kKernelAddress{Ipv4Address{0x0a630701}, 24};
inline constexpr Ipv4Prefix kOurAddress{Ipv4Address{0x0a630702}, 24};
inline constexpr MacAddress kOurMac{{0x02, 0, 0, 0, 0, 0x77}};
inline constexpr Endpoint kKernelPort{kKernelAddress.address, 9000};
inline constexpr Endpoint kOurPort{kOurAddress.address, 7471};
inline constexpr IpPrefix kKernelIpv6{{0xfd63'0007ULL << 32, 1}, 64};
inline constexpr IpPrefix kOurIpv6{{0xfd63'0007ULL << 32, 2}, 64};

// Ends a test that hangs; a good one needs less, on a busy machine too.
inline constexpr Duration kTimeout = 60s;

struct TapOptions {
  std::uint16_t mtu_bytes = 1500;
  std::uint8_t dscp = 0;
  bool offloads = true;
  bool is_ipv6 = false;
  bool finds_address = false;
  bool finds_router = false;  // By advertisements; false: the kernel's address is the gateway.
  std::uint16_t our_only_port = 0;  // Not 0: our source port of all connections.
  tcp::TcpSettings tcp = {};
};

// A Stack and the link it is on.
class Host {
 public:
  Host(std::unique_ptr<link::Link> link, tcp::StackConfig config);

  // One turn of a poller. True when there was something to do.
  bool turn();
  // Our clock jumps by `span`; the kernel's goes on as before.
  void skip(Duration span) { skipped_ += span; }

  tcp::Stack& stack() { return stack_; }
  link::Link& link() { return *link_; }

 private:
  TimePoint now() const { return real_now() + skipped_; }

  std::unique_ptr<link::Link> link_;
  tcp::Stack stack_;
  Duration skipped_{};
  std::vector<TxFrame> outgoing_;
  std::size_t outgoing_begin_ = 0;
  std::size_t outgoing_end_ = 0;
};

class TapTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  // Begins another round in the same test.
  void start_over() {
    TearDown();
    SetUp();
  }

  // Opens the tap, the kernel's address on it and our stack; open_cable() puts a cable in between,
  // which the fixture owns.
  void open(const TapOptions& options = {});
  Cable& open_cable(const TapOptions& options, const link::Impairment& outgoing = {},
                    const link::Impairment& incoming = {}, std::uint64_t seed = 1);

  tcp::Stack& stack() { return host_->stack(); }
  // Their family is the one that the last open() chose.
  Endpoint kernel_port() const {
    return is_ipv6_ ? Endpoint{kKernelIpv6.address, kKernelPort.port} : kKernelPort;
  }
  Endpoint our_port() const {
    return is_ipv6_ ? Endpoint{host_->stack().address(), kOurPort.port} : kOurPort;
  }
  // The blocks each side sends; call before apps are made.
  void make_apps(std::size_t our_bytes, std::size_t kernel_bytes);
  enum class Opener : std::uint8_t { kUs, kKernel };
  // Both sides established; fails the test otherwise.
  void connect(Opener opener);
  bool is_all_delivered() const {
    return ours_->has_received_all() && kernel_->has_received_all() && ours_->is_all_acked();
  }
  // Ends both sides in order and waits until ours has nothing left.
  void finish();

  // Makes turns until `done`; fails with the state when `limit` passes first or an app complains.
  [[nodiscard]] testing::AssertionResult run_until(const std::function<bool()>& done,
                                                   Duration limit = kTimeout);
  // Makes turns for `span`.
  [[nodiscard]] testing::AssertionResult run_for(Duration span);
  // Makes so many turns of both sides: on a busy machine a time may pass without one.
  [[nodiscard]] testing::AssertionResult run_turns(int count);

  std::unique_ptr<Host> host_;
  sim::Bytes our_data_;
  sim::Bytes kernel_data_;
  std::unique_ptr<sim::App> ours_;
  std::unique_ptr<KernelApp> kernel_;
  // More work in each turn.
  std::vector<std::function<void()>> actors_;

 private:
  std::unique_ptr<link::Link> open_tap(const TapOptions& options);
  tcp::StackConfig stack_config(const TapOptions& options, const link::Link& link) const;
  std::string violation() const;
  std::string state() const;

  bool is_ipv6_ = false;
};

}  // namespace ztcp::interop
