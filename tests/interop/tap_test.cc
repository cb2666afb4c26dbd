// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/interop/tap_test.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <sstream>

namespace ztcp::interop {
namespace {

constexpr std::size_t kBurst = 32;
// Pause between looks at both sides while they are idle.
constexpr timespec kIdlePause{.tv_sec = 0, .tv_nsec = 50'000};

}  // namespace

Host::Host(std::unique_ptr<link::Link> link, tcp::StackConfig config)
    : link_(std::move(link)), stack_(config, {0x1234, 0x5678}), outgoing_(kBurst) {}

bool Host::turn() {
  std::array<RxFrame, kBurst> incoming;
  const std::size_t count = link_->receive(incoming);
  const std::span<RxFrame> burst = std::span(incoming).first(count);
  const TimePoint time = now();
  if (count > 0) stack_.on_frames(time, burst);
  link_->release(burst);
  stack_.on_timers(time);
  bool sent = false;
  for (;;) {
    if (outgoing_begin_ == outgoing_end_) {
      outgoing_begin_ = 0;
      outgoing_end_ = stack_.collect(time, outgoing_);
    }
    if (outgoing_end_ == 0) break;
    sent = true;
    const std::size_t ready = outgoing_end_ - outgoing_begin_;
    const std::size_t taken = link_->transmit(std::span(outgoing_).subspan(outgoing_begin_, ready));
    outgoing_begin_ += taken;
    if (taken < ready || ready < kBurst) break;
  }
  for (std::size_t released = kBurst; released == kBurst;) {
    released = stack_.take_released(incoming);
    link_->release(std::span(incoming).first(released));
  }
  return count > 0 || sent;
}

void TapTest::SetUp() {
  if (const std::string why = enter_new_network(); !why.empty()) GTEST_SKIP() << why;
}

void TapTest::TearDown() {
  actors_.clear();
  kernel_.reset();
  host_.reset();
  ours_.reset();
}

std::unique_ptr<link::Link> TapTest::open_tap(const TapOptions& options) {
  link::TapConfig config;
  config.interface = kInterface;
  config.mac = kOurMac;
  config.mtu_bytes = options.mtu_bytes;
  config.offloads = options.offloads;
  auto opened = link::open_tap(config);
  if (!opened) throw std::runtime_error(opened.error().where);
  is_ipv6_ = options.is_ipv6;
  if (!configure_interface(kInterface, is_ipv6_ ? kKernelIpv6 : IpPrefix(kKernelAddress)))
    throw std::runtime_error("no address for the tap");
  return std::move(*opened);
}

tcp::StackConfig TapTest::stack_config(const TapOptions& options, const link::Link& link) const {
  tcp::StackConfig config;
  config.mac = kOurMac;
  config.address = options.is_ipv6 ? kOurIpv6 : IpPrefix(kOurAddress);
  if (options.finds_address) config.address = {IpAddress(), 128};
  config.finds_address = options.finds_address;
  config.finds_router = options.finds_router;
  if (!options.finds_router) config.gateway = kernel_port().address;
  config.mtu_bytes = options.mtu_bytes;
  config.dscp = options.dscp;
  config.tx_checksum_offload = link.capabilities().tx_checksum;
  config.max_super_segment_bytes = link.capabilities().max_super_segment_bytes;
  config.max_held_bytes = link.capabilities().max_kept_bytes;
  config.max_held_frames = link.capabilities().max_kept_frames;
  config.max_connections = 64;
  if (options.our_only_port != 0)
    config.ephemeral_port_first = config.ephemeral_port_last = options.our_only_port;
  config.tcp = options.tcp;
  return config;
}

void TapTest::open(const TapOptions& options) {
  auto link = open_tap(options);
  const tcp::StackConfig config = stack_config(options, *link);
  host_ = std::make_unique<Host>(std::move(link), config);
}

Cable& TapTest::open_cable(const TapOptions& options, const link::Impairment& outgoing,
                           const link::Impairment& incoming, std::uint64_t seed) {
  TapOptions plain = options;
  plain.offloads = false;
  auto cable = std::make_unique<Cable>(open_tap(plain), outgoing, incoming, seed);
  Cable& view = *cable;
  const tcp::StackConfig config = stack_config(plain, *cable);
  host_ = std::make_unique<Host>(std::move(cable), config);
  return view;
}

void TapTest::make_apps(std::size_t our_bytes, std::size_t kernel_bytes) {
  our_data_ = sim::pattern(our_bytes, 101);
  kernel_data_ = sim::pattern(kernel_bytes, 202);
  ours_ = std::make_unique<sim::App>(our_data_, kernel_data_);
  kernel_ = std::make_unique<KernelApp>(kernel_data_, our_data_);
}

void TapTest::connect(Opener opener) {
  if (opener == Opener::kUs) {
    ASSERT_EQ(kernel_->listen(kernel_port()), "");
    const auto stream = stack().connect(real_now(), kernel_port(), *ours_);
    ASSERT_TRUE(stream);
    ours_->attach(**stream);
  } else {
    ASSERT_TRUE(stack().listen(kOurPort.port, *ours_));
    ASSERT_EQ(kernel_->connect(our_port()), "");
  }
  ASSERT_TRUE(run_until([this] { return ours_->is_open() && kernel_->is_connected(); }));
}

void TapTest::finish() {
  ours_->close();
  ASSERT_TRUE(run_until([this] { return kernel_->is_peer_closed(); }));
  kernel_->close();
  ASSERT_TRUE(run_until([this] { return stack().unfinished() == 0; }));
}

testing::AssertionResult TapTest::run_until(const std::function<bool()>& done, Duration limit) {
  const TimePoint end = real_now() + limit;
  for (;;) {
    if (kernel_) kernel_->pump();
    for (const auto& act : actors_) act();
    const bool busy = host_->turn();
    if (const std::string wrong = violation(); !wrong.empty())
      return testing::AssertionFailure() << wrong << "\n" << state();
    if (done()) return testing::AssertionSuccess();
    if (real_now() >= end) return testing::AssertionFailure() << "not done in time\n" << state();
    if (!busy) nanosleep(&kIdlePause, nullptr);
  }
}

testing::AssertionResult TapTest::run_for(Duration span) {
  const TimePoint end = real_now() + span;
  return run_until([end] { return real_now() >= end; }, span + kTimeout);
}

testing::AssertionResult TapTest::run_turns(int count) {
  return run_until([count]() mutable { return count-- <= 0; });
}

std::string TapTest::violation() const {
  if (ours_ && !ours_->violation().empty()) return "ours: " + ours_->violation();
  if (kernel_ && !kernel_->violation().empty()) return kernel_->violation();
  return {};
}

std::string TapTest::state() const {
  std::ostringstream out;
  if (ours_)
    out << "ours: received " << ours_->received() << " of " << kernel_data_.size() << ", acked "
        << ours_->acked() << " of " << our_data_.size()
        << (ours_->error() ? std::string(", failed: ") + describe(ours_->error()->code) + " in " +
                                 ours_->error()->where
                           : "")
        << "\n";
  if (kernel_)
    out << "kernel: received " << kernel_->received() << ", sent " << kernel_->sent() << ", errno "
        << kernel_->error() << ", retransmits " << kernel_->info().total_retransmits << "\n";
  const tcp::Counters& c = host_->stack().counters();
  out << "stack: rx " << c.rx_segments << " ooo " << c.rx_out_of_order << " dup " << c.rx_duplicate
      << " bad " << c.rx_bad_checksum << " malformed " << c.rx_malformed << " no memory "
      << c.rx_dropped_no_memory << "; tx " << c.tx_segments << " again " << c.tx_retransmitted_bytes
      << " B, rto " << c.rto_fired << " tlp " << c.tlp_fired << " recoveries " << c.rack_recoveries
      << " spurious " << c.spurious_recoveries << " challenges " << c.challenge_acks << " resets "
      << c.tx_resets;
  return out.str();
}

}  // namespace ztcp::interop
