// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Rendezvous and agreement of ranks: a star of plain TCP connections around rank 0. Carries
// handles, start lines and results, never measured data. Also carries failures: a failing rank
// reports through rank 0, and a dead rank is noticed by its connection.
//
// Any program can connect to rank 0's port. A caller becomes a rank by proving the run's secret
// (secret.h); until then it may send one short frame within kGreetingTimeout, and beyond
// max_callers() of them the oldest is dropped, so that silent callers keep no rank out. In a run
// without a secret, a caller that fits no rank is refused and the run keeps waiting.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <future>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "tools/ztcp_perf/failure.h"
#include "tools/ztcp_perf/frame_reader.h"
#include "tools/ztcp_perf/options.h"
#include "tools/ztcp_perf/secret.h"

namespace ztcp::perf {

// A TCP listener on loopback, on a port that the kernel chooses, for ranks started here.
struct LoopbackListener {
  int fd = -1;
  std::uint16_t port = 0;
};
LoopbackListener listen_on_loopback();

class Bootstrap {
 public:
  // Returns when all ranks are connected; throws Failure with the missing ranks after the timeout.
  explicit Bootstrap(const Options& options);
  ~Bootstrap();
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // "host pid 123" of each rank.
  const std::vector<std::string>& places() const { return places_; }

  // Returns every rank's bytes on every rank, in rank order. All ranks must call it in the same
  // order.
  std::vector<Bytes> all_gather(std::span<const std::byte> mine);
  // Returns every rank's bytes on rank 0, in rank order; nothing on other ranks, which do not wait.
  // All ranks must call it in the same order, too.
  std::vector<Bytes> gather(std::span<const std::byte> mine);
  void barrier() { all_gather({}); }

  template <class T>
  requires std::is_trivially_copyable_v<T> std::vector<T> all_gather_values(const T& mine) {
    std::vector<T> values;
    for (const Bytes& bytes : all_gather(std::as_bytes(std::span(&mine, 1)))) {
      if (bytes.size() != sizeof(T)) malformed(values.size());
      T value;
      std::memcpy(&value, bytes.data(), sizeof value);
      values.push_back(value);
    }
    return values;
  }
  // Rank 0's value on every rank.
  template <class T>
  requires std::is_trivially_copyable_v<T> T from_rank_0(const T& mine) {
    return all_gather_values(mine).front();
  }

  // Throws Stopped when another rank has failed. Cheap enough to call every few milliseconds.
  void check();
  // Tells ranks that wait for this one that it is alive, now and then. Call it during long work.
  void beat();
  // The result of long work, such as filling a gigabyte, on another thread while this one calls
  // beat(): other ranks wait meanwhile.
  template <class Work>
  std::invoke_result_t<Work> beat_during(Work work) {
    auto result = start(std::move(work));
    while (result.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) beat();
    return result.get();
  }
  // How long another rank may be silent while this one waits for it; --connect-timeout until all
  // are connected.
  void set_silence_timeout(std::chrono::duration<double> timeout);
  // Tells the other ranks why this rank ends. Never throws.
  void abort(const std::string& reason) noexcept;

 private:
  template <class Work>
  static std::future<std::invoke_result_t<Work>> start(Work work) {
    try {
      return std::async(std::launch::async, std::move(work));
    } catch (const std::system_error& error) {
      fail("cannot start a thread: {}; raise ulimit -u, pids.max of the job's cgroup, or ulimit -v",
           error.code().message());
    }
  }

  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kGreetingTimeout{5};
  // One connection: at rank 0 to every other rank, elsewhere to rank 0.
  struct Peer {
    int fd = -1;
    int rank = -1;
    Clock::time_point heard;  // Time of its last bytes.
    FrameReader reader;
  };
  // On rank 0: a connection that has not yet proved to be a rank.
  struct Caller {
    Peer peer;
    Nonce challenge;
    Clock::time_point since;
  };
  enum class Verdict : std::uint8_t { kAdmitted, kDropped };

  void gather_ranks(const Options& options);
  void take_callers(int listener, std::vector<Caller>& callers) const;
  std::size_t max_callers() const { return static_cast<std::size_t>(size_) + 64; }
  // Judges callers that have sent a frame, and drops those that took too long. Returns the number
  // of new ranks.
  int judge_callers(std::vector<Caller>& callers, const Options& options);
  Verdict judge(Caller& caller, const Options& options);
  void refuse(Peer& caller, const std::string& why, bool is_proven);
  void join(const Options& options);
  int dial(const Options& options, Clock::time_point deadline);
  // One attempt: false if rank 0 closed the connection before it admitted this rank.
  bool introduce_to(Peer& rank_0, const Options& options, Clock::time_point deadline);
  void introduce();
  void send(Peer& peer, FrameType type, std::span<const std::byte> payload);
  // Reads available bytes, bounded. False at the end of the connection.
  bool read_some(Peer& peer);
  // The next frame of a connection that is not a peer yet; absent at its end.
  std::optional<Frame> next_frame(Peer& peer, Clock::time_point deadline, const std::string& what);
  // Waits until `deadline`, or until the peer has been silent for too long.
  Frame await(Peer& peer, std::optional<Clock::time_point> deadline, const std::string& what);
  void heed(Peer& peer);
  [[noreturn]] static void malformed(std::size_t rank);
  [[noreturn]] void lost(const Peer& peer);
  void close_all() noexcept;

  int rank_ = 0;
  int size_ = 1;
  std::chrono::duration<double> timeout_;
  Clock::duration silence_timeout_;
  Clock::time_point next_beat_;
  std::vector<Peer> peers_;
  std::vector<std::string> places_;
  std::string last_refusal_;  // For a caller without a proof.
  int refusals_ = 0;
};

}  // namespace ztcp::perf
