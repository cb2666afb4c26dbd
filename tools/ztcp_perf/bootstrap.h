// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How ranks find each other and agree: a star of plain TCP connections around rank 0. Carries
// handles, start lines and results, never measured data. It also carries bad news: a rank that
// fails says so through rank 0, and a rank that dies is noticed by its connection.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "tools/ztcp_perf/options.h"

namespace ztcp::perf {

// A TCP listener on loopback with a port of the kernel's choice, for ranks started here.
struct LoopbackListener {
  int fd = -1;
  std::uint16_t port = 0;
};
LoopbackListener listen_on_loopback();

class Bootstrap {
 public:
  // Returns when all ranks are there; throws Failure naming who is missing when the time is up.
  explicit Bootstrap(const Options& options);
  ~Bootstrap();
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;

  using Bytes = std::vector<std::byte>;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // "host pid 123" of each rank.
  const std::vector<std::string>& places() const { return places_; }

  // Every rank's bytes at every rank, in rank order. All ranks call it in the same order.
  std::vector<Bytes> all_gather(std::span<const std::byte> mine);
  void barrier() { all_gather({}); }

  template <class T>
  requires std::is_trivially_copyable_v<T> std::vector<T> all_gather_values(const T& mine) {
    std::vector<T> values;
    for (const Bytes& bytes : all_gather(std::as_bytes(std::span(&mine, 1)))) {
      T value;
      std::memcpy(&value, bytes.data(), sizeof value);
      values.push_back(value);
    }
    return values;
  }
  // Rank 0's value at every rank.
  template <class T>
  requires std::is_trivially_copyable_v<T> T from_rank_0(const T& mine) {
    return all_gather_values(mine).front();
  }

  // Cheap enough to call every few milliseconds: throws Stopped when another rank has failed.
  void check();
  // Tells those who wait for this rank that it gets on, now and then. To be called while it does.
  void beat();
  // For how long another rank may say nothing while this one waits for it; --connect-timeout until
  // all are connected.
  void set_patience(std::chrono::duration<double> patience);
  // Tells the others why this rank ends. Never throws.
  void abort(const std::string& reason) noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  enum class Type : std::uint32_t { kHello = 1, kWelcome, kRefuse, kData, kAbort, kAlive };
  struct Frame {
    Type type;
    Bytes payload;
  };
  // One connection: at rank 0 to every other rank, elsewhere to rank 0.
  struct Peer {
    int fd = -1;
    int rank = -1;
    Clock::time_point heard;   // The last time that it sent anything.
    Bytes inbox;               // Bytes that don't make a whole frame yet.
    std::deque<Frame> frames;  // Whole ones nobody has asked for.
  };

  void gather_ranks(const Options& options);
  void join(const Options& options);
  void introduce();
  bool admit(Peer& stranger, const Options& options);
  void send(Peer& peer, Type type, std::span<const std::byte> payload);
  // Reads what is there. False at the end of the connection.
  bool read_some(Peer& peer);
  // Until `deadline`, or until the peer has been silent for too long.
  Frame await(Peer& peer, std::optional<Clock::time_point> deadline, const std::string& what);
  void heed(Peer& peer);
  [[noreturn]] void lost(const Peer& peer);
  void close_all() noexcept;

  int rank_ = 0;
  int size_ = 1;
  std::chrono::duration<double> timeout_;
  Clock::duration patience_;
  Clock::time_point next_beat_;
  std::vector<Peer> peers_;
  std::vector<std::string> places_;
};

}  // namespace ztcp::perf
