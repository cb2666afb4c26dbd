// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Measures the cycles that the protocol engine needs for a byte on each side. Two engines are
// joined in memory by reference: the frames that one transmits, header and user memory, are the
// frames that the other receives, as if a NIC had moved them. So the only copy is the engine's own,
// from the frame into the posted buffer, and it is compared with one memcpy of the same bytes into
// the same buffer.
//
// Both sides run in turns on one thread and each call is charged to its side; goodput is that of
// the slower side, as if each had a core. The sender fills the whole window before the receiver
// runs, so that a sender's checksum pass does not leave the bytes in the receiver's L2. With
// workers (--workers N) the receiver's time ends when they have finished their copies.
//
// With --shards N eight connections are distributed over N threads, and all are timed together by
// the clock, beside one thread with all eight.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/engine/joined_pair.h"
#include "bench/engine/shards.h"
#include "bench/engine/slices.h"

namespace ztcp::bench {
namespace {

constexpr int kRepetitions = 9;
// Working sets up to this have few slices: they get more repetitions.
constexpr std::size_t kManyBytes = 32U << 20;

struct Row {
  PairOptions options;
  std::size_t working_set_bytes = 0;
};

struct Sample {
  double goodput_gbps = 0;
  double memcpy_gbps = 0;
  double ratio = 0;
  double send_cycles_per_byte = 0;
  double receive_cycles_per_byte = 0;
};

double cycles_per_second() {
  const auto begin = std::chrono::steady_clock::now();
  const std::uint64_t first = read_cycles();
  while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(50)) {
  }
  const auto end = std::chrono::steady_clock::now();
  return static_cast<double>(read_cycles() - first) /
         std::chrono::duration<double>(end - begin).count();
}

// Source and destination make up the working set, half each.
struct Buffers {
  explicit Buffers(std::size_t working_set_bytes)
      : source(working_set_bytes / 2), destination(working_set_bytes / 2) {
    std::uint64_t state = 1;
    for (std::size_t at = 0; at < source.size(); at += 8) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      std::memcpy(source.data() + at, &state, 8);
    }
  }
  std::vector<std::byte> source;
  std::vector<std::byte> destination;
};

// Cycles of each slice of the buffers, in order of the slices.
struct Slices {
  std::vector<double> copying;
  std::vector<double> sending;
  std::vector<double> receiving;
};

// Copies the source into the destination by memcpy, then again through the engines. Both go slice
// by slice, so that a moment of a busy machine spoils one slice only; a memcpy of a slice is also
// the faster memcpy, because a larger one would bypass the caches.
bool measure(const Row& row, Buffers& buffers, Slices& slices) {
  const std::size_t size = buffers.source.size();
  for (std::size_t at = 0; at < size; at += kSliceBytes) {
    const std::uint64_t begin = read_cycles();
    std::memcpy(buffers.destination.data() + at, buffers.source.data() + at, kSliceBytes);
    asm volatile("" ::"r"(buffers.destination.data()) : "memory");
    slices.copying.push_back(static_cast<double>(read_cycles() - begin));
  }

  JoinedPair pair(row.options, buffers.source, buffers.destination);
  if (!pair.connect()) return false;
  // Opens the congestion window, and leaves the stream at the start of the buffers.
  pair.transfer(size);
  std::memset(buffers.destination.data(), 0, size);
  for (std::size_t at = 0; at < size; at += kSliceBytes) {
    const Cycles cycles = pair.transfer(kSliceBytes);
    slices.sending.push_back(static_cast<double>(cycles.send));
    slices.receiving.push_back(static_cast<double>(cycles.receive));
  }
  return pair.is_intact() && buffers.destination == buffers.source;
}

Sample summarize(Slices& slices, double hz) {
  const double send = median(slices.sending) / kSliceBytes;
  const double receive = median(slices.receiving) / kSliceBytes;
  const double copy = median(slices.copying) / kSliceBytes;
  Sample sample;
  sample.goodput_gbps = 8e-9 * hz / std::max(send, receive);
  sample.memcpy_gbps = 8e-9 * hz / copy;
  sample.ratio = sample.goodput_gbps / sample.memcpy_gbps;
  sample.send_cycles_per_byte = send;
  sample.receive_cycles_per_byte = receive;
  return sample;
}

std::string to_json(const Row& row, const Sample& s) {
  char text[512];
  std::snprintf(text, sizeof text,
                "{\"mtu\": %u, \"super_segment_bytes\": %u, \"checksum\": \"%s\", "
                "\"workers\": %zu, \"working_set_bytes\": %zu, \"goodput_gbps\": %.2f, "
                "\"memcpy_gbps\": %.2f, "
                "\"ratio\": %.3f, \"send_cycles_per_byte\": %.4f, "
                "\"receive_cycles_per_byte\": %.4f}",
                row.options.mtu_bytes, row.options.super_segment_bytes,
                row.options.checksum_offload ? "offloaded" : "software", row.options.workers,
                row.working_set_bytes, s.goodput_gbps, s.memcpy_gbps, s.ratio,
                s.send_cycles_per_byte, s.receive_cycles_per_byte);
  return text;
}

// `only_mib`: the working set; 0: each.
std::vector<Row> rows(std::size_t workers, std::size_t only_mib, bool is_ipv6) {
  std::vector<Row> all;
  for (const std::size_t working_set : {std::size_t{8} << 20, std::size_t{256} << 20}) {
    if (only_mib != 0 && working_set != only_mib << 20) continue;
    for (const std::uint16_t mtu : {std::uint16_t{9000}, std::uint16_t{1500}}) {
      all.push_back({{mtu, 0, true, workers, is_ipv6}, working_set});
      all.push_back({{mtu, 0, false, workers, is_ipv6}, working_set});
      all.push_back({{mtu, 65000, true, workers, is_ipv6}, working_set});
    }
  }
  return all;
}

int run(const std::string& json_path, std::size_t workers, std::size_t only_mib, bool is_ipv6) {
  const double hz = cycles_per_second();
  const std::vector<Row> all = rows(workers, only_mib, is_ipv6);
  std::vector<Slices> slices(all.size());
  // Repetitions interleave, so that a busy moment of the machine affects every row a little.
  for (std::size_t working_set_first = 0; working_set_first < all.size();) {
    const std::size_t working_set = all[working_set_first].working_set_bytes;
    Buffers buffers(working_set);
    std::size_t end = working_set_first;
    while (end < all.size() && all[end].working_set_bytes == working_set) ++end;
    const int repetitions = working_set > kManyBytes ? kRepetitions : 20 * kRepetitions;
    for (int repetition = 0; repetition < repetitions; ++repetition) {
      for (std::size_t i = working_set_first; i < end; ++i) {
        if (!measure(all[i], buffers, slices[i])) {
          std::fprintf(stderr, "the bytes did not arrive as they were sent\n");
          return 1;
        }
      }
    }
    working_set_first = end;
  }

  std::string json = "{\n  \"cycles_per_second\": " + std::to_string(hz) +
                     ",\n  \"repetitions\": " + std::to_string(kRepetitions) +
                     ",\n  \"results\": [\n";
  std::fprintf(
      stderr, "  mtu  super  checksum   working set  goodput  memcpy  ratio  send c/B  recv c/B\n");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Sample middle = summarize(slices[i], hz);
    json += "    " + to_json(all[i], middle) + (i + 1 < all.size() ? ",\n" : "\n");
    std::fprintf(stderr, "%5u  %5u  %-9s  %8zu MiB  %7.1f  %6.1f  %5.2f  %8.4f  %8.4f\n",
                 all[i].options.mtu_bytes, all[i].options.super_segment_bytes,
                 all[i].options.checksum_offload ? "offloaded" : "software",
                 all[i].working_set_bytes >> 20, middle.goodput_gbps, middle.memcpy_gbps,
                 middle.ratio, middle.send_cycles_per_byte, middle.receive_cycles_per_byte);
  }
  json += "  ]\n}\n";
  if (json_path == "-") {
    std::cout << json;
  } else if (!json_path.empty()) {
    std::ofstream file(json_path);
    file << json;
    if (!file.flush()) {
      std::fprintf(stderr, "cannot write %s\n", json_path.c_str());
      return 1;
    }
  }
  return 0;
}

int run_shards(std::size_t shards) {
  constexpr std::size_t kConnections = 8;
  std::fprintf(stderr, "shards  goodput  memcpy  ratio  of one shard\n");
  double alone = 0;
  for (const std::size_t count : {std::size_t{1}, shards}) {
    const ShardsSample sample = measure_shards(count, kConnections, kRepetitions);
    if (!sample.is_intact) {
      std::fprintf(stderr, "the bytes did not arrive as they were sent\n");
      return 1;
    }
    if (count == 1) alone = sample.goodput_gbps;
    std::fprintf(stderr, "%6zu  %7.1f  %6.1f  %5.2f  %12.2f\n", count, sample.goodput_gbps,
                 sample.memcpy_gbps, sample.goodput_gbps / sample.memcpy_gbps,
                 sample.goodput_gbps / alone);
  }
  return 0;
}

}  // namespace
}  // namespace ztcp::bench

int main(int argc, char** argv) {
  std::string json_path;
  std::size_t workers = 0;
  std::size_t only_mib = 0;
  std::size_t shards = 0;
  std::size_t family = 4;
  bool understood = argc % 2 == 1;
  for (int i = 1; i + 1 < argc && understood; i += 2) {
    const std::string_view option = argv[i];
    const std::string_view value = argv[i + 1];
    const auto is_number = [value](std::size_t& out) {
      return std::from_chars(value.data(), value.data() + value.size(), out).ec == std::errc{};
    };
    if (option == "--json") {
      json_path = value;
    } else if (option == "--workers") {
      understood = is_number(workers) && workers <= ztcp::msg::CopyJobs::kMaxWorkers;
    } else if (option == "--shards") {
      understood = argc == 3 && is_number(shards) && shards >= 1 && shards <= 8;
    } else if (option == "--set") {
      understood = is_number(only_mib) && !ztcp::bench::rows(0, only_mib, false).empty();
    } else if (option == "--ip") {
      understood = is_number(family) && (family == 4 || family == 6);
    } else {
      understood = false;
    }
  }
  if (!understood) {
    const bool asked = argc == 2 && std::strcmp(argv[1], "--help") == 0;
    std::fprintf(asked ? stdout : stderr,
                 "usage: %s [--workers N] [--set 8|256] [--ip 4|6] [--json FILE|-]\n       %s "
                 "--shards 1..8\n",
                 argv[0], argv[0]);
    return asked ? 0 : 2;
  }
  if (shards != 0) return ztcp::bench::run_shards(shards);
  return ztcp::bench::run(json_path, workers, only_mib, family == 6);
}
