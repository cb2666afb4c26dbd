// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A stream whose other end is the test: it records writes and how it was ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/stream.h"
#include "transport/msg/record.h"
#include "transport/msg/record_reader.h"

namespace ztcp::msg {

class RecordingStream final : public Stream {
 public:
  std::size_t room() const override { return full ? 0 : std::size_t{1} << 20; }
  bool write(std::span<const std::byte> copied, std::span<const Fragment> referenced) override {
    if (full || takes == 0) return false;
    --takes;
    written.insert(written.end(), copied.begin(), copied.end());
    for (const Fragment& f : referenced)
      written.insert(written.end(), f.data, f.data + f.size_bytes);
    return true;
  }
  void finish() override {}  // Sessions call close().
  void close() override { closed = true; }
  void abort() override { aborted = true; }
  void expect_late_acks() override { expects_late_acks = true; }
  void set_dscp(std::uint8_t dscp) override { its_dscp = dscp; }
  void ask_delivery() override { ++delivery_asks; }
  void ask_peer() override { ++peer_asks; }
  void hand_over(StreamEvents& events) override { handed_to = &events; }
  void settle_place() override { ++settled; }
  StreamHealth health() const override { return vitals; }
  StreamStall stall(TimePoint) const override {
    ++stall_asks;
    return stalled;
  }
  StreamStatistics stream_statistics(TimePoint) const override {
    StreamStatistics statistics;
    statistics.local.port = port;
    return statistics;
  }
  void tolerate_shut_window(Duration lasted) override { tolerated.push_back(lasted); }

  std::optional<std::uint8_t> its_dscp;

  bool is_left() const { return closed || aborted; }

  struct Record {
    RecordHeader header;
    std::vector<std::byte> body;
    std::vector<std::byte> payload;
  };
  // Bytes written since the last call, cut into records.
  std::vector<Record> records() {
    std::vector<Record> out;
    std::span<const std::byte> input = written;
    for (;;) {
      switch (reader.next(input)) {
        case RecordReader::Step::kRecord: {
          const auto body = reader.body();
          out.push_back({reader.header(), {body.begin(), body.end()}, {}});
          break;
        }
        case RecordReader::Step::kPayload: {
          auto& payload = out.back().payload;
          payload.insert(payload.end(), reader.payload().begin(), reader.payload().end());
          break;
        }
        case RecordReader::Step::kPreamble:
          break;
        default:
          written.clear();
          return out;
      }
    }
  }

  std::vector<std::byte> written;
  RecordReader reader;
  bool full = false;
  std::size_t takes = SIZE_MAX;  // Number of further writes accepted.
  bool closed = false;
  bool aborted = false;
  bool expects_late_acks = false;
  int settled = 0;
  int delivery_asks = 0;
  int peer_asks = 0;
  StreamEvents* handed_to = nullptr;
  StreamHealth vitals;
  StreamStall stalled;
  std::uint16_t port = 0;
  mutable int stall_asks = 0;
  std::vector<Duration> tolerated;
};

}  // namespace ztcp::msg
