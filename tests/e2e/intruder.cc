// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A hostile neighbour on the last port of a local fabric, for strangers.py: while ranks are busy it
// scans their ports, opens connections that send garbage or nothing, uses another wire version, and
// sends them random, truncated and mutated frames.
//
//   intruder CONFIG VICTIM SECONDS SEED     VICTIM: index of a NIC of the config
//
// Prints "connections N answers N frames N" at the end, so that the test knows that it got through.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string_view>
#include <thread>
#include <time.h>
#include <vector>

#include "config/file/load.h"
#include "config/machine/live_machine.h"
#include "transport/link/dpdk_link.h"
#include "transport/link/eal.h"
#include "transport/msg/record.h"
#include "transport/tcp/stack.h"
#include "transport/wire/ethernet.h"
#include "transport/wire/ipv4.h"
#include "transport/wire/tcp_header.h"

namespace ztcp {
namespace {

using Random = std::mt19937_64;

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "intruder: %s\n", what);
  std::exit(1);
}

TimePoint read_clock() {
  timespec ts{};
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return TimePoint(std::chrono::seconds(ts.tv_sec) + std::chrono::nanoseconds(ts.tv_nsec));
}

// One connection to the victim's listening port: sends `opening`, then records the reaction.
class Stranger final : public StreamEvents {
 public:
  explicit Stranger(std::vector<std::byte> opening) : opening_(std::move(opening)) {}
  void on_open(TimePoint, Stream& stream) override {
    opened = true;
    std::span<const std::byte> rest = opening_;
    while (!rest.empty()) {
      const auto piece = rest.first(std::min(rest.size(), Stream::kMaxCopiedBytes));
      if (!stream.write(piece, {})) break;
      rest = rest.subspan(piece.size());
    }
  }
  void on_bytes(TimePoint, std::span<const std::byte> bytes) override { heard += bytes.size(); }
  void on_acked(TimePoint, std::uint64_t) override {}
  void on_closed(TimePoint) override { over = true; }
  void on_failed(TimePoint, Error) override { over = true; }

  bool opened = false;
  bool over = false;
  std::size_t heard = 0;

 private:
  std::vector<std::byte> opening_;
};

std::vector<std::byte> random_bytes(Random& random, std::size_t size) {
  std::vector<std::byte> out(size);
  for (std::byte& b : out) b = static_cast<std::byte>(random() >> 56U);
  return out;
}

// First bytes of a stranger: an HTTP request, noise, a later version of our format, or none.
std::vector<std::byte> opening(Random& random) {
  const auto text = [](std::string_view s) {
    const auto bytes = std::as_bytes(std::span(s));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  switch (random() % 4) {
    case 0:
      return text("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    case 1:
      return random_bytes(random, 1 + random() % 4000);
    case 2: {
      std::vector<std::byte> out(msg::kPreambleBytes);
      msg::encode_preamble(msg::kWireVersion + 1, out);
      const auto noise = random_bytes(random, random() % 300);
      out.insert(out.end(), noise.begin(), noise.end());
      return out;
    }
    default:
      return {};
  }
}

// A frame to `to`: a SYN to any port, a segment of no connection, or noise behind a valid Ethernet
// header; sometimes truncated.
TxFrame hostile_frame(Random& random, const MacAddress& from_mac, const config::Nic& from,
                      const config::Nic& to, std::vector<std::byte>& payload) {
  TxFrame out{};
  std::byte* p = out.header.data();
  wire::EthernetHeader ethernet;
  ethernet.destination = to.mac;
  ethernet.source = from_mac;
  std::size_t size = wire::emit_ethernet(ethernet, p);
  out.l2_bytes = static_cast<std::uint8_t>(size);
  payload = random_bytes(random, random() % 1200);
  if (random() % 3 == 0) {
    // Noise from the IP header on.
    const auto noise = random_bytes(random, 40);
    std::memcpy(p + size, noise.data(), noise.size());
    size += noise.size();
  } else {
    wire::TcpHeader tcp;
    tcp.source_port = static_cast<std::uint16_t>(random());
    tcp.destination_port = random() % 2 == 0 ? 7471 : static_cast<std::uint16_t>(random());
    tcp.sequence = static_cast<std::uint32_t>(random());
    tcp.acknowledgment = static_cast<std::uint32_t>(random());
    tcp.window = static_cast<std::uint16_t>(random());
    tcp.flags =
        random() % 2 == 0 ? wire::kSyn : wire::TcpFlags(static_cast<std::uint8_t>(random()));
    wire::Ipv4Header ip;
    // Sometimes with another rank's address.
    ip.source = random() % 4 == 0 ? Ipv4Address{to.address.address.v4().value ^ 3U}
                                  : from.address.address.v4();
    ip.destination = to.address.address.v4();
    std::byte* const ip_at = p + size;
    std::byte* const tcp_at = ip_at + wire::kIpv4Bytes;
    const std::size_t tcp_bytes = wire::emit_tcp(tcp, tcp_at);
    ip.total_bytes = static_cast<std::uint16_t>(wire::kIpv4Bytes + tcp_bytes + payload.size());
    wire::emit_ipv4(ip, ip_at);
    wire::Checksum sum;
    std::array<std::byte, 12> pseudo{};
    std::memcpy(pseudo.data(), ip_at + 12, 8);
    pseudo[9] = std::byte{6};
    wire::store_be16(pseudo.data() + 10, static_cast<std::uint16_t>(tcp_bytes + payload.size()));
    sum.add(pseudo);
    sum.add({tcp_at, tcp_bytes});
    sum.add(payload);
    if (random() % 8 != 0) wire::store_be16(tcp_at + wire::kTcpChecksumOffset, sum.finish());
    size += wire::kIpv4Bytes + tcp_bytes;
    // A flipped byte anywhere behind the Ethernet header.
    if (random() % 4 == 0) p[14 + random() % (size - 14)] ^= static_cast<std::byte>(random() | 1U);
  }
  if (random() % 4 == 0) {
    size = 14 + random() % (size - 14);
    payload.clear();
  }
  out.header_bytes = static_cast<std::uint16_t>(size);
  if (!payload.empty()) {
    out.fragment_count = 1;
    out.fragments[0] = {payload.data(), static_cast<std::uint32_t>(payload.size()), kUnmapped};
    out.payload_bytes = static_cast<std::uint32_t>(payload.size());
  }
  return out;
}

int run(const char* path, std::size_t victim, double seconds, std::uint64_t seed) {
  config::LiveMachine machine;
  const config::LoadResult loaded = config::load(machine, path);
  if (!loaded.fabric || victim >= loaded.fabric->nics.size()) die("no such config or NIC");
  const config::Nic& own = loaded.fabric->nics.back();
  const config::Nic& target = loaded.fabric->nics[victim];

  link::MemifConfig memif;
  memif.socket_path = own.memif_socket;
  memif.mac = own.mac;
  memif.mtu_bytes = own.mtu_bytes;
  if (!link::start_eal({.memory = link::EalMemory::kPlain,
                        .iova = link::IovaMode::kVirtual,
                        .node_memory_mib = {link::kEalBaseMib + link::memif_memory_mib(memif)}})) {
    die("EAL");
  }
  auto opened = link::open_memif(memif);
  if (!opened) die("memif");
  link::Link& link = **opened;

  tcp::StackConfig config;
  config.mac = own.mac;
  config.address = own.address.v4();
  config.mtu_bytes = own.mtu_bytes;
  tcp::Stack stack(config, {seed, ~seed});

  Random random(seed);
  std::vector<std::unique_ptr<Stranger>> strangers;
  std::size_t frames = 0;
  std::array<RxFrame, 32> rx;
  std::array<TxFrame, 32> tx;
  std::vector<std::byte> payload;
  const TimePoint ends = read_clock() + std::chrono::nanoseconds(static_cast<long>(seconds * 1e9));
  TimePoint next_stranger{};
  for (TimePoint now = read_clock(); now < ends; now = read_clock()) {
    const std::size_t got = link.receive(rx);
    stack.on_frames(now, std::span(rx).first(got));
    link.release(std::span(rx).first(got));
    if (now >= next_stranger && link.is_up() && strangers.size() < 200) {
      next_stranger = now + std::chrono::milliseconds(10);
      strangers.push_back(std::make_unique<Stranger>(opening(random)));
      static_cast<void>(stack.connect(
          now, {target.address.address, loaded.fabric->messages.listen_port}, *strangers.back()));
    }
    stack.on_timers(now);
    while (const std::size_t n = stack.take_released(rx)) {
      for (RxFrame& f : std::span(rx).first(n)) f.kept = false;
      link.release(std::span(rx).first(n));
    }
    const std::size_t n = stack.collect(now, tx);
    if (n != 0) link.transmit(std::span(tx).first(n));
    const TxFrame hostile = hostile_frame(random, own.mac, own, target, payload);
    frames += link.transmit({&hostile, 1});
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  std::size_t connected = 0;
  std::size_t answered = 0;
  for (const auto& stranger : strangers) {
    connected += stranger->opened ? 1U : 0U;
    answered += stranger->over || stranger->heard != 0 ? 1U : 0U;
  }
  std::printf("connections %zu answers %zu frames %zu\n", connected, answered, frames);
  return 0;
}

}  // namespace
}  // namespace ztcp

int main(int argc, char** argv) {
  if (argc != 5) ztcp::die("usage: intruder CONFIG VICTIM SECONDS SEED");
  return ztcp::run(argv[1], static_cast<std::size_t>(std::atoi(argv[2])), std::atof(argv[3]),
                   std::strtoull(argv[4], nullptr, 10));
}
