// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Measures the cost of a SYN in a flood: the table of half-open connections is full, and each SYN
// pushes out the oldest. A flood's rate times this cost is its share of the poller's core.
#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

#include "transport/tcp/stack.h"
#include "transport/wire/checksum.h"
#include "transport/wire/ethernet.h"
#include "transport/wire/ipv4.h"
#include "transport/wire/tcp_header.h"

namespace ztcp::bench {
namespace {

constexpr MacAddress kOurMac{{2, 0, 0, 0, 0, 1}};
constexpr MacAddress kTheirMac{{2, 0, 0, 0, 0, 2}};
constexpr Ipv4Address kOurs{0x0a4d0101};
constexpr Ipv4Address kTheirs{0x0a4d0102};
constexpr std::uint16_t kPort = 7471;
constexpr std::size_t kSyns = 60'000;  // One for each source port.

class Nobody final : public tcp::StreamAcceptor {
  StreamEvents* on_accept(TimePoint, Stream&, Endpoint) override { return nullptr; }
};

std::vector<std::byte> syn(std::uint16_t from) {
  std::vector<std::byte> frame(128);
  const std::size_t ip_at =
      wire::emit_ethernet({.destination = kOurMac, .source = kTheirMac}, frame.data());
  const std::size_t tcp_at = ip_at + wire::kIpv4Bytes;
  wire::TcpHeader tcp;
  tcp.source_port = from;
  tcp.destination_port = kPort;
  tcp.sequence = from;
  tcp.flags = wire::kSyn;
  tcp.options.mss_bytes = 1460;
  const std::size_t tcp_bytes = wire::emit_tcp(tcp, frame.data() + tcp_at);
  wire::Ipv4Header ip;
  ip.source = kTheirs;
  ip.destination = kOurs;
  ip.total_bytes = static_cast<std::uint16_t>(wire::kIpv4Bytes + tcp_bytes);
  wire::emit_ipv4(ip, frame.data() + ip_at);
  frame.resize(tcp_at + tcp_bytes);
  wire::Checksum sum =
      wire::pseudo_header_checksum(kTheirs, kOurs, static_cast<std::uint32_t>(tcp_bytes));
  sum.add(std::span(frame).subspan(tcp_at));
  wire::store_be16(frame.data() + tcp_at + wire::kTcpChecksumOffset, sum.finish());
  return frame;
}

double nanoseconds_per_syn(const std::vector<std::vector<std::byte>>& syns,
                           std::size_t max_connections) {
  tcp::StackConfig config;
  config.mac = kOurMac;
  config.address = {kOurs, 24};
  config.max_connections = max_connections;
  tcp::Stack stack(config, {1, 2});
  Nobody nobody;
  if (!stack.listen(kPort, nobody)) return 0;
  std::vector<TxFrame> out(64);
  TimePoint now{std::chrono::seconds(1)};
  std::chrono::steady_clock::time_point start;
  // The first half fills the table.
  for (std::size_t i = 0; i < syns.size(); ++i) {
    if (i == syns.size() / 2) start = std::chrono::steady_clock::now();
    now += std::chrono::microseconds(10);
    RxFrame frame;
    frame.head = syns[i];
    stack.on_frames(now, std::span(&frame, 1));
    stack.on_timers(now);
    stack.collect(now, out);
  }
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
  return spent.count() / static_cast<double>(syns.size() - syns.size() / 2);
}

}  // namespace
}  // namespace ztcp::bench

int main() {
  std::vector<std::vector<std::byte>> syns;
  for (std::size_t i = 1; i <= ztcp::bench::kSyns; ++i)
    syns.push_back(ztcp::bench::syn(static_cast<std::uint16_t>(i)));
  std::printf("places in the table   ns per SYN, answer included\n");
  for (const std::size_t places : {64UL, 1024UL, 16384UL})
    std::printf("%19zu   %10.0f\n", places, ztcp::bench::nanoseconds_per_syn(syns, places));
}
