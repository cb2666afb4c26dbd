// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Measures the CPU time of a frame over AF_XDP: one thread sends bursts on one end of a veth and
// receives them at the other, in a network namespace of its own, as root. On a veth the sending
// call runs the receiver's side of the kernel as well. Three kinds of bursts take turns: without a
// checksum, as where a NIC computes it; with the payload summed while it is copied, as the link
// does it; and with the payload summed before.
//
//   xdp_bench [--seconds S] [--burst N] [--rounds N] [MTU...]
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <sched.h>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "transport/link/xdp_link.h"
#include "transport/wire/byte_order.h"
#include "transport/wire/checksum.h"

namespace {

using namespace ztcp;

constexpr Ipv4Address kSender{0x0a630801};    // 10.99.8.1
constexpr Ipv4Address kReceiver{0x0a630802};  // 10.99.8.2
constexpr std::uint16_t kPort = 7471;
constexpr std::uint16_t kHeaderBytes = 66;  // Ethernet, IPv4, TCP with timestamps.
constexpr std::size_t kMostInABurst = 256;
constexpr std::size_t kWorkingSetBytes = 64U << 20;  // Larger than the cache of a core.

struct Options {
  double seconds = 1.0;
  std::size_t burst = 32;
  int rounds = 5;
  std::vector<std::uint16_t> mtus;
};

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Ends the program where the thread has waited too long since then.
void end_after(double since, const char* problem) {
  constexpr double kMostSeconds = 5;
  if (cpu_seconds() - since < kMostSeconds) return;
  fmt::print(stderr, "xdp_bench: {} for {} s\n", problem, kMostSeconds);
  std::exit(1);
}

void run(const std::string& command) {
  if (std::system(command.c_str()) == 0) return;
  fmt::print(stderr, "xdp_bench: failed: {}\n", command);
  std::exit(1);
}

std::unique_ptr<link::Link> open_end(const char* interface, Ipv4Address address,
                                     std::uint16_t mtu_bytes) {
  link::XdpConfig config;
  config.interface = interface;
  config.address = address;
  config.listen_port = kPort;
  config.first_port = 61000;
  config.last_port = 65535;
  config.mtu_bytes = mtu_bytes;
  auto opened = link::open_xdp(config);
  if (!opened) {
    fmt::print(stderr, "xdp_bench: {}: {} failed: {}\n", interface, opened.error().where,
               std::strerror(opened.error().sys_errno));
    std::exit(1);
  }
  return std::move(opened->front());
}

enum class Sum : std::uint8_t { kNone, kWhileCopying, kBefore };

// Both ends, and the frames of a burst, whose payload moves through a working set.
class Veth {
 public:
  Veth(std::uint16_t mtu_bytes, std::size_t burst)
      : payload_bytes_(mtu_bytes + 14U - kHeaderBytes),
        payload_(kWorkingSetBytes + payload_bytes_, std::byte{0x5a}),
        frames_(burst) {
    run(fmt::format("ip link add xb0 mtu {0} type veth peer name xb1 mtu {0}", mtu_bytes));
    run("ip link set xb0 up && ip link set xb1 up");
    run("ip address add 10.99.8.1/24 dev xb0 && ip address add 10.99.8.2/24 dev xb1");
    sender_ = open_end("xb0", kSender, mtu_bytes);
    receiver_ = open_end("xb1", kReceiver, mtu_bytes);
    const double since = cpu_seconds();
    while (!sender_->is_up() || !receiver_->is_up()) {
      end_after(since, "xb0 and xb1 have no carrier");
      sched_yield();
    }
    for (TxFrame& frame : frames_) {
      std::byte* const p = frame.header.data();
      frame.header_bytes = kHeaderBytes;
      frame.l2_bytes = 14;
      frame.l3_bytes = 20;
      frame.fragment_count = 1;
      frame.payload_bytes = payload_bytes_;
      std::memset(p, 0xff, 6);
      wire::store_be16(p + 12, 0x0800);
      wire::store_u8(p + 14, 0x45);
      wire::store_be16(p + 16, mtu_bytes);
      wire::store_u8(p + 23, 6);
      wire::store_be32(p + 30, kReceiver.value);
      wire::store_be16(p + 36, kPort);
    }
  }
  ~Veth() {
    sender_.reset();
    receiver_.reset();
    run("ip link delete xb0");
  }

  void send(Sum how) {
    for (TxFrame& frame : frames_) {
      frame.fragments[0] = {next_payload(), payload_bytes_, kUnmapped};
      frame.checksum_offload = how == Sum::kWhileCopying;
    }
    std::uint32_t seen = 0;
    for (const TxFrame& frame : frames_) {
      if (how != Sum::kBefore) break;
      wire::Checksum sum;
      sum.add({frame.fragments[0].data, payload_bytes_});
      seen += sum.folded();
    }
    asm volatile("" : : "r"(seen));
    std::span<const TxFrame> left(frames_);
    while (!left.empty()) left = left.subspan(sender_->transmit(left));
  }
  void receive() {
    std::array<RxFrame, kMostInABurst> frames;
    const double since = cpu_seconds();
    for (std::size_t missing = frames_.size(); missing > 0;) {
      end_after(since, "frames were lost between xb0 and xb1");
      const std::size_t count = receiver_->receive(std::span(frames).first(missing));
      receiver_->release(std::span(frames).first(count));
      missing -= count;
    }
  }

 private:
  const std::byte* next_payload() {
    const std::byte* const out = payload_.data() + at_;
    at_ = (at_ + payload_bytes_) % kWorkingSetBytes;
    return out;
  }

  const std::uint32_t payload_bytes_;
  const std::vector<std::byte> payload_;
  std::vector<TxFrame> frames_;
  std::size_t at_ = 0;
  std::unique_ptr<link::Link> sender_;
  std::unique_ptr<link::Link> receiver_;
};

// Nanoseconds of a frame.
struct Costs {
  double without_sum = 0;
  double summed_while_copying = 0;
  double summed_before = 0;
  double receive = 0;
};

Costs measure_once(Veth& veth, const Options& options) {
  Costs sums;
  std::size_t bursts = 0;
  double total = 0;
  double before = cpu_seconds();
  const auto lap = [&](double& into) {
    const double now = cpu_seconds();
    into += now - before;
    total += now - before;
    before = now;
  };
  const auto carry = [&](Sum how, double& into) {
    veth.send(how);
    lap(into);
    veth.receive();
    lap(sums.receive);
  };
  for (; total < options.seconds; ++bursts) {
    carry(Sum::kNone, sums.without_sum);
    carry(Sum::kWhileCopying, sums.summed_while_copying);
    carry(Sum::kBefore, sums.summed_before);
  }
  const double scale = 1e9 / static_cast<double>(bursts * options.burst);
  return {sums.without_sum * scale, sums.summed_while_copying * scale, sums.summed_before * scale,
          sums.receive * scale / 3};
}

double median_of(const std::vector<Costs>& rounds, double Costs::*member) {
  std::vector<double> values;
  for (const Costs& round : rounds) values.push_back(round.*member);
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void measure(std::uint16_t mtu_bytes, const Options& options) {
  Veth veth(mtu_bytes, options.burst);
  std::vector<Costs> rounds;
  for (int round = 0; round < options.rounds; ++round)
    rounds.push_back(measure_once(veth, options));
  fmt::print("{:>6} {:>6} {:>12.0f} {:>14.0f} {:>14.0f} {:>11.0f}\n", mtu_bytes, options.burst,
             median_of(rounds, &Costs::without_sum),
             median_of(rounds, &Costs::summed_while_copying),
             median_of(rounds, &Costs::summed_before), median_of(rounds, &Costs::receive));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const int number = i + 1 < argc ? std::atoi(argv[i + 1]) : 0;
    if (argument == "--seconds" && i + 1 < argc) {
      options.seconds = std::atof(argv[++i]);
    } else if (argument == "--burst" && number > 0 && number <= static_cast<int>(kMostInABurst)) {
      options.burst = static_cast<std::size_t>(std::atoi(argv[++i]));
    } else if (argument == "--rounds" && number > 0) {
      options.rounds = std::atoi(argv[++i]);
    } else if (const int mtu = std::atoi(argv[i]); mtu >= 100 && mtu <= 9216) {
      options.mtus.push_back(static_cast<std::uint16_t>(mtu));
    } else {
      fmt::print(stderr, "usage: xdp_bench [--seconds S] [--burst N] [--rounds N] [MTU...]\n");
      return 2;
    }
  }
  if (options.mtus.empty()) options.mtus = {100, 1500, 3500, 9000};
  if (::unshare(CLONE_NEWNET) != 0) {
    std::perror("xdp_bench: a network namespace of its own");
    return 1;
  }
  fmt::print("{:>6} {:>6} {:>12} {:>14} {:>14} {:>11}\n", "MTU", "burst", "send ns",
             "+ sum, copying", "+ sum, before", "receive ns");
  for (const std::uint16_t mtu_bytes : options.mtus) measure(mtu_bytes, options);
  return 0;
}
