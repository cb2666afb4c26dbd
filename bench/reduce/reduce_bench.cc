// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Measures on one thread two ways to add the floats of received frames to a vector: the frames are
// copied to a segment's scratch memory, and the segment is then reduced from there, as ztcp does;
// or each frame is reduced where it lies. Beside them the copy alone, and the conversions of the
// wire formats. Each round takes all ways in turns; prints medians over the rounds.
//
//   reduce_bench [--rounds N] [--sources N]
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "transport/reduce/kernels.h"

namespace {

using namespace ztcp::reduce;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kVectorBytes = 64 << 20U;  // Larger than caches.
constexpr std::size_t kRingBytes = 8 << 20U;     // Frames of an RX ring and its pool.
constexpr std::size_t kSegmentBytes = 128 << 10U;
constexpr std::size_t kSlots = 16;

struct Memory {
  std::vector<std::byte> own = std::vector<std::byte>(kVectorBytes);
  std::vector<std::byte> to = std::vector<std::byte>(kVectorBytes);
  std::vector<std::byte> frames;  // A ring for each other host, one after the other.
  std::vector<std::byte> scratch;
  std::size_t others = 1;
  std::size_t next_frame = 0;

  explicit Memory(std::size_t sources) : others(sources - 1) {
    frames.resize(others * kRingBytes);
    scratch.resize(others * kSlots * kSegmentBytes);
    fill(own);
    fill(frames);
  }
  static void fill(std::vector<std::byte>& bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(float)) {
      const auto value = static_cast<float>(at % 1021) / 64;
      std::memcpy(bytes.data() + at, &value, sizeof value);
    }
  }
};

// Calls visit(place in the segment, size, frame of each other host) for the frames of a segment.
// Headers lie before the payload of a frame, so that it begins at 66 bytes of a line.
template <class Visit>
void for_each_frame(Memory& memory, std::size_t payload_bytes, Visit&& visit) {
  constexpr std::size_t kHeaders = 66;
  const std::size_t stride = (payload_bytes + kHeaders + 127) / 64 * 64;
  std::array<const std::byte*, 8> frames{};
  for (std::size_t at = 0; at < kSegmentBytes; at += payload_bytes) {
    if (memory.next_frame + stride > kRingBytes) memory.next_frame = 0;
    for (std::size_t host = 0; host < memory.others; ++host)
      frames[host] = memory.frames.data() + host * kRingBytes + memory.next_frame + kHeaders;
    memory.next_frame += stride;
    visit(at, std::min(payload_bytes, kSegmentBytes - at), frames);
  }
}

std::byte* scratch_of(Memory& memory, std::size_t host, std::size_t segment) {
  return memory.scratch.data() + (host * kSlots + segment % kSlots) * kSegmentBytes;
}

void copy_frames(Memory& memory, std::size_t payload_bytes, std::size_t segment) {
  for_each_frame(memory, payload_bytes, [&](std::size_t at, std::size_t size, const auto& frames) {
    for (std::size_t host = 0; host < memory.others; ++host)
      std::memcpy(scratch_of(memory, host, segment) + at, frames[host], size);
  });
}

void copy_then_reduce(Memory& memory, std::size_t payload_bytes, std::size_t segment) {
  copy_frames(memory, payload_bytes, segment);
  std::array<const std::byte*, 9> sources{memory.own.data() + segment * kSegmentBytes};
  for (std::size_t host = 0; host < memory.others; ++host)
    sources[host + 1] = scratch_of(memory, host, segment);
  combine(ElementType::kFloat32, Reduction::kSum, memory.to.data() + segment * kSegmentBytes,
          std::span(sources).first(memory.others + 1), {0, kSegmentBytes / sizeof(float)});
}

void reduce_frames(Memory& memory, std::size_t payload_bytes, std::size_t segment) {
  for_each_frame(memory, payload_bytes, [&](std::size_t at, std::size_t size, const auto& frames) {
    std::array<const std::byte*, 9> sources{memory.own.data() + segment * kSegmentBytes + at};
    std::copy_n(frames.begin(), memory.others, sources.begin() + 1);
    combine(ElementType::kFloat32, Reduction::kSum, memory.to.data() + segment * kSegmentBytes + at,
            std::span(sources).first(memory.others + 1), {0, size / sizeof(float)});
  });
}

struct Way {
  std::string name;
  std::function<void(std::size_t segment)> run;
  std::vector<double> gigabytes_per_second;  // Of the vector, by round.
};

void measure(std::vector<Way>& ways, std::size_t rounds) {
  constexpr std::size_t kSegments = kVectorBytes / kSegmentBytes;
  for (std::size_t round = 0; round <= rounds; ++round) {
    for (Way& way : ways) {
      const auto start = Clock::now();
      for (std::size_t segment = 0; segment < kSegments; ++segment) way.run(segment);
      const std::chrono::duration<double> took = Clock::now() - start;
      // The first round touches the memory.
      if (round > 0) way.gigabytes_per_second.push_back(kVectorBytes / took.count() / 1e9);
    }
  }
  fmt::print("{:<44} {:>8}\n", "one thread, floats", "GB/s");
  for (Way& way : ways) {
    auto& all = way.gigabytes_per_second;
    std::ranges::nth_element(all, all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2));
    fmt::print("{:<44} {:>8.2f}\n", way.name, all[all.size() / 2]);
  }
}

std::vector<Way> ways_of(Memory& memory) {
  std::vector<Way> ways;
  for (const std::size_t payload : {1448U, 8948U}) {
    const auto add = [&](std::string_view name, auto work) {
      ways.push_back(
          {fmt::format("payload of {}: {}", payload, name),
           [&memory, payload, work](std::size_t segment) { work(memory, payload, segment); },
           {}});
    };
    add("copy alone", copy_frames);
    add("copy, then reduce", copy_then_reduce);
    add("reduce the frames", reduce_frames);
  }
  const Range all{0, kSegmentBytes / sizeof(float)};
  const auto at = [](std::vector<std::byte>& vector, std::size_t segment) {
    return vector.data() + segment * kSegmentBytes;
  };
  ways.push_back({"round to bf16",
                  [&memory, at, all](std::size_t segment) {
                    narrow_to_bfloat16(scratch_of(memory, 0, segment), at(memory.own, segment),
                                       all);
                  },
                  {}});
  ways.push_back({"sum of two as bf16, to float",
                  [&memory, at, all](std::size_t segment) {
                    const std::array<const std::byte*, 2> sources{
                        scratch_of(memory, 0, segment), scratch_of(memory, 0, segment + 1)};
                    sum_bfloat16_as_float(at(memory.to, segment), sources, all);
                  },
                  {}});
  return ways;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t rounds = 15;
  std::size_t sources = 2;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    std::size_t* const option = argument == "--rounds"    ? &rounds
                                : argument == "--sources" ? &sources
                                                          : nullptr;
    const long value = i + 1 < argc ? std::atol(argv[i + 1]) : 0;
    if (option == nullptr || value < 1 || (option == &sources && (value < 2 || value > 8))) {
      fmt::print(stderr, "usage: reduce_bench [--rounds N] [--sources N]    2 to 8 sources\n");
      return 2;
    }
    *option = static_cast<std::size_t>(value);
    ++i;
  }
  Memory memory(sources);
  std::vector<Way> ways = ways_of(memory);
  measure(ways, rounds);
  return 0;
}
