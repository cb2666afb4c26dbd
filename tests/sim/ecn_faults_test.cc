// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Paths that clear, set or repeat congestion marks: every byte arrives, at nearly the speed of a
// path without ECN, and faults that slow the sender down are counted.
#include <chrono>
#include <cstdio>
#include <functional>
#include <ostream>

#include <gtest/gtest.h>

#include "tests/sim/tcp_world.h"
#include "transport/tcp/dctcp.h"
#include "transport/wire/frame_parser.h"

namespace ztcp::sim {
namespace {

using namespace std::chrono_literals;

wire::ParsedFrame parse(const Bytes& frame) {
  RxFrame view;
  view.head = frame;
  return wire::parse_frame(view);
}

// Clears and sets flags of a TCP segment; its checksum changes by their difference (RFC 1624).
void change_flags(Bytes& frame, const wire::ParsedFrame& parsed, wire::TcpFlags clear,
                  wire::TcpFlags set) {
  std::byte* tcp = frame.data() + parsed.payload_offset - parsed.tcp.header_bytes;
  const std::uint16_t before = wire::load_be16(tcp + wire::kTcpFlagsOffset);
  const auto after = static_cast<std::uint16_t>((before & ~unsigned{clear.bits()}) | set.bits());
  wire::store_be16(tcp + wire::kTcpFlagsOffset, after);
  const auto inverted = [](std::uint32_t sum) { return static_cast<std::uint16_t>(~sum); };
  std::uint32_t sum = inverted(wire::load_be16(tcp + wire::kTcpChecksumOffset));
  sum += inverted(before) + std::uint32_t{after};
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  wire::store_be16(tcp + wire::kTcpChecksumOffset, inverted(sum));
}

// In segments after the SYNs.
void change_flags(Bytes& frame, wire::TcpFlags clear, wire::TcpFlags set) {
  const auto parsed = parse(frame);
  if (parsed.kind == wire::FrameKind::kTcp && !parsed.tcp.flags.has(wire::kSyn))
    change_flags(frame, parsed, clear, set);
}

// Makes a SYN ask for classic ECN.
void agree_on_classic(Bytes& frame) {
  const auto parsed = parse(frame);
  if (parsed.kind == wire::FrameKind::kTcp && parsed.tcp.flags.has(wire::kSyn))
    change_flags(frame, parsed, wire::kAe, {});
}

using Change = std::function<void(Bytes&)>;

struct Fault {
  const char* name;
  Change forward;   // Data.
  Change backward;  // ACKs.
  bool is_counted;  // The sender gives ECN up.
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

std::vector<Fault> faults() {
  const auto gives = [](wire::Ecn ecn) {
    return [ecn](Bytes& frame) { set_codepoint(frame, ecn); };
  };
  return {
      {"none", {}, {}, false},
      {"all_codepoints_are_cleared", gives(wire::Ecn::kNotCapable), {}, false},
      {"marks_are_cleared", gives(wire::Ecn::kEct0), {}, true},
      {"ect0_becomes_ect1", gives(wire::Ecn::kEct1), {}, true},
      {"every_packet_is_marked", gives(wire::Ecn::kCongestion), {}, true},
      {"data_is_marked",
       [](Bytes& frame) {
         if (parse(frame).ip.ecn == wire::Ecn::kEct0) set_codepoint(frame, wire::Ecn::kCongestion);
       },
       {},
       true},
      {"acks_are_marked", {}, gives(wire::Ecn::kCongestion), false},
      {"classic_ece_for_ever", agree_on_classic,
       [](Bytes& frame) { change_flags(frame, {}, wire::kEce); }, true},
      {"classic_cwr_is_cleared",
       [](Bytes& frame) {
         agree_on_classic(frame);
         change_flags(frame, wire::kCwr, {});
         if (parse(frame).ip.ecn == wire::Ecn::kEct0) set_codepoint(frame, wire::Ecn::kCongestion);
       },
       {},
       true},
      {"flags_are_cleared", [](Bytes& frame) { change_flags(frame, wire::ace_flags(7), {}); },
       [](Bytes& frame) { change_flags(frame, wire::ace_flags(7), {}); }, false},
  };
}

constexpr std::size_t kBytes = 16U << 20;

class EcnFaults : public testing::TestWithParam<Fault> {};

TEST_P(EcnFaults, EveryByteArrivesInTime) {
  for (const bool has_dctcp : {false, true}) {
    TcpWorldOptions options;
    options.world.forward = {
        .delay = 25us, .rate_bits_per_second = 1'000'000'000, .queue_limit_bytes = 512U << 10};
    options.world.backward = {.delay = 25us};
    if (has_dctcp)
      options.stack.tcp.congestion_control_by_marks = tcp::make_congestion_control<tcp::Dctcp>;
    options.client_bytes = kBytes;
    TcpWorld pair(options);
    if (GetParam().forward) pair.world.wire(0).change(GetParam().forward);
    if (GetParam().backward) pair.world.wire(1).change(GetParam().backward);
    ASSERT_TRUE(pair.run_until_connected()) << pair.world.why();
    const TimePoint begin = pair.world.now();
    ASSERT_TRUE(pair.world.run_until([&] { return pair.is_all_delivered(); })) << pair.world.why();
    const double seconds = std::chrono::duration<double>(pair.world.now() - begin).count();
    const tcp::Counters& sender = pair.client_stack.counters();
    std::printf("    %s, %s: %.0f Mb/s, %u reductions, %u faults\n", GetParam().name,
                has_dctcp ? "dctcp" : "cubic", 8e-6 * kBytes / seconds,
                static_cast<unsigned>(sender.ecn_reductions),
                static_cast<unsigned>(sender.ecn_faults));
    EXPECT_EQ(sender.ecn_faults, GetParam().is_counted ? 1U : 0U);
    // At the line's rate it takes 0.14 s.
    EXPECT_LT(seconds, 0.14 + 0.2);
    EXPECT_TRUE(pair.finish()) << pair.world.why();
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, EcnFaults, testing::ValuesIn(faults()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace ztcp::sim
