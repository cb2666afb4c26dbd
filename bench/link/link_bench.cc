// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Measures the throughput of a link between two processes of one machine, one CPU each: frames with
// payload in user memory, received, read once and released. Beside it one memcpy of the same bytes
// in the same run. memif copies twice before that reading, shared memory once.
//
//   link_bench [--seconds S] [--ring-log2 N] [FRAME_BYTES...]
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sched.h>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "transport/link/dpdk_link.h"
#include "transport/link/eal.h"
#include "transport/link/shm_link.h"

namespace {

using namespace ztcp;
using Clock = std::chrono::steady_clock;

struct Options {
  double seconds = 1.0;
  std::uint8_t ring_size_log2 = 0;
  std::vector<std::uint32_t> frame_bytes;
};

// Pins to the n-th CPU this process may use; to the only one if there is no other.
void pin_to(unsigned n) {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof(allowed), &allowed);
  n %= static_cast<unsigned>(CPU_COUNT(&allowed));
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || n-- != 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);
    return;
  }
}

enum class Kind : std::uint8_t { kMemif, kShared };

struct Place {
  Kind kind = Kind::kMemif;
  std::string socket;
  std::uint32_t frame_bytes = 0;
};

std::unique_ptr<link::Link> open_shared(const Place& place, bool server, const Options& options) {
  constexpr MacAddress kServer{{2, 0, 0, 0, 0, 1}};
  constexpr MacAddress kClient{{2, 0, 0, 0, 0, 2}};
  link::ShmConfig config;
  config.socket_path = place.socket;
  config.server = server;
  config.mac = server ? kServer : kClient;
  config.peer_mac = server ? kClient : kServer;
  config.mtu_bytes = static_cast<std::uint16_t>(place.frame_bytes - 14);
  config.slots = options.ring_size_log2 != 0 ? 1U << options.ring_size_log2 : 0;
  auto opened = link::open_shm(config);
  return opened ? std::move(*opened) : nullptr;
}

std::unique_ptr<link::Link> open_link(const Place& place, link::MemifRole role,
                                      const Options& options) {
  if (place.kind == Kind::kShared)
    return open_shared(place, role == link::MemifRole::kServer, options);
  link::MemifConfig config;
  config.socket_path = place.socket;
  config.role = role;
  config.mac = {{2, 0, 0, 0, 0, static_cast<std::uint8_t>(role)}};
  config.mtu_bytes = static_cast<std::uint16_t>(place.frame_bytes - 14);
  config.ring_size_log2 = options.ring_size_log2;
  link::EalConfig eal;
  eal.node_memory_mib = {link::kEalBaseMib + link::memif_memory_mib(config)};
  if (!link::start_eal(eal)) return nullptr;
  link::register_poller_thread();
  auto opened = link::open_memif(config);
  return opened ? std::move(*opened) : nullptr;
}

TimePoint now() { return TimePoint(Clock::now().time_since_epoch()); }

int send_for_ever(const Place& place, const Options& options) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  pin_to(0);
  auto link = open_link(place, link::MemifRole::kClient, options);
  if (!link) return 1;
  const std::uint32_t frame_bytes = place.frame_bytes;
  constexpr std::size_t kBurst = 32;
  constexpr std::uint16_t kHeaderBytes = 66;
  constexpr std::size_t kWorkingSetBytes = 8U << 20;
  const std::vector<std::byte> payload(kWorkingSetBytes + frame_bytes, std::byte{0x5a});
  const std::uint32_t payload_bytes = frame_bytes - kHeaderBytes;
  std::vector<TxFrame> frames(kBurst);
  std::size_t at = 0;
  for (TxFrame& frame : frames) {
    frame.header.fill(std::byte{0x11});
    frame.header_bytes = kHeaderBytes;
    frame.l2_bytes = 14;
    frame.fragment_count = 1;
    frame.payload_bytes = payload_bytes;
  }
  std::array<RxFrame, 1> none;
  while (true) {
    for (TxFrame& frame : frames) {
      frame.fragments[0] = {payload.data() + at, payload_bytes, 1};
      at = (at + payload_bytes) % kWorkingSetBytes;
    }
    std::span<const TxFrame> left(frames);
    link->transmit_room(now());
    while (!left.empty()) left = left.subspan(link->transmit(left));
    link->release(std::span(none).first(link->receive(none)));
  }
}

// Reads each byte, as a checksum or a copy would.
std::uint64_t read_all(const RxFrame& frame) {
  std::uint64_t sum = 0;
  const auto read = [&](std::span<const std::byte> bytes) {
    for (std::size_t at = 0; at + 64 <= bytes.size(); at += 64)
      sum += std::to_integer<std::uint64_t>(bytes[at]);
  };
  read(frame.head);
  for (const auto piece : frame.more) read(piece);
  return sum;
}

// Gigabits per second of frames received; 0 when none came.
double receive_rate(const Place& place, const Options& options) {
  auto link = open_link(place, link::MemifRole::kServer, options);
  if (!link) return 0;
  std::array<RxFrame, 32> frames;
  std::uint64_t bytes = 0;
  std::uint64_t sum = 0;
  const auto limit = Clock::now() + std::chrono::seconds(10);
  Clock::time_point start{};
  Clock::time_point now = Clock::now();
  // The clock starts at the first frame, after a warm-up of a tenth of the time.
  while (now < limit) {
    link->transmit_room(TimePoint(now.time_since_epoch()));
    const std::size_t count = link->receive(frames);
    for (const RxFrame& frame : std::span(frames).first(count)) sum += read_all(frame);
    asm volatile("" : : "r"(sum));
    link->release(std::span(frames).first(count));
    now = Clock::now();
    if (count == 0) continue;
    if (start == Clock::time_point{})
      start = now + std::chrono::duration_cast<Clock::duration>(
                        std::chrono::duration<double>(options.seconds / 10));
    if (now < start) continue;
    bytes += count * place.frame_bytes;
    if (std::chrono::duration<double>(now - start).count() >= options.seconds) break;
  }
  const double elapsed = std::chrono::duration<double>(now - start).count();
  return static_cast<double>(bytes) * 8 / elapsed / 1e9;
}

double memcpy_rate(std::uint32_t frame_bytes, double seconds) {
  const std::size_t total = std::max<std::size_t>(8U << 20, frame_bytes);
  const std::vector<char> from(total, 'x');
  std::vector<char> to(total, 'y');
  std::uint64_t bytes = 0;
  const auto start = Clock::now();
  double elapsed = 0;
  while (elapsed < seconds) {
    for (std::size_t at = 0; at + frame_bytes <= total; at += frame_bytes, bytes += frame_bytes) {
      std::memcpy(to.data() + at, from.data() + at, frame_bytes);
      asm volatile("" ::: "memory");
    }
    elapsed = std::chrono::duration<double>(Clock::now() - start).count();
  }
  return static_cast<double>(bytes) * 8 / elapsed / 1e9;
}

void measure(Kind kind, std::uint32_t frame_bytes, const Options& options) {
  std::string folder = std::filesystem::temp_directory_path() / "link-bench-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return;
  const Place place{kind, folder + "/0.sock", frame_bytes};
  // EAL starts once per process, so each row needs two new processes.
  const pid_t receiver = fork();
  if (receiver == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const double copied = memcpy_rate(frame_bytes, options.seconds / 4);
    const pid_t sender = fork();
    if (sender == 0) _exit(send_for_ever(place, options));
    pin_to(1);
    const double carried = receive_rate(place, options);
    kill(sender, SIGKILL);
    waitpid(sender, nullptr, 0);
    fmt::print("{:>8} {:>8} {:>9.1f} {:>10.3f} {:>12.1f} {:>7.2f}\n",
               kind == Kind::kMemif ? "memif" : "shared", frame_bytes, carried,
               carried * 1e3 / 8 / frame_bytes, copied, carried / copied);
    std::fflush(stdout);
    _exit(carried > 0 ? 0 : 1);
  }
  waitpid(receiver, nullptr, 0);
  std::filesystem::remove_all(folder);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--seconds" && i + 1 < argc) {
      options.seconds = std::atof(argv[++i]);
    } else if (argument == "--ring-log2" && i + 1 < argc) {
      options.ring_size_log2 = static_cast<std::uint8_t>(std::atoi(argv[++i]));
    } else if (const int bytes = std::atoi(argv[i]); bytes >= 600 && bytes <= 65294) {
      options.frame_bytes.push_back(static_cast<std::uint32_t>(bytes));
    } else {
      fmt::print(stderr, "usage: link_bench [--seconds S] [--ring-log2 N] [FRAME_BYTES...]\n");
      return 2;
    }
  }
  if (options.frame_bytes.empty()) options.frame_bytes = {1514, 9014, 65294};
  fmt::print("{:>8} {:>8} {:>9} {:>10} {:>12} {:>7}\n", "link", "frame B", "Gb/s", "Mframes/s",
             "memcpy Gb/s", "ratio");
  std::fflush(stdout);
  for (const std::uint32_t frame_bytes : options.frame_bytes)
    for (const Kind kind : {Kind::kMemif, Kind::kShared}) measure(kind, frame_bytes, options);
  return 0;
}
