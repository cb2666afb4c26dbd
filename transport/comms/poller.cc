// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/poller.h"

#include <algorithm>
#include <ctime>
#include <exception>
#include <new>
#include <sched.h>

#include "core/log.h"
#include "core/own_thread.h"
#include "transport/comms/process_end.h"

namespace ztcp::comms {
namespace {

// How often on_check() is called.
constexpr Duration kCheckInterval = std::chrono::milliseconds(1);
// Dedicated: this many times `spin` is spent yielding before the thread sleeps.
constexpr int kYieldFactor = 4;
// The shortest sleep is this part of the longest. Pacing asks for a turn every few microseconds;
// a thread that only stands in for absent callers need not follow it that closely.
constexpr int kSleepResolution = 8;
// Shared: turns that a holder of the baton runs for other threads' posts before it goes on.
constexpr std::uint64_t kTurnsForOthers = 2;
// A turn that moves kLadenBytes calls the background thread: moving as much again takes longer than
// the handover, and where sends and receives have separate pollers they run in parallel. The thread
// keeps the turns until none has moved kStillLadenBytes for kLadenFor: a GPU pauses for
// milliseconds between two halves of one collective, and without the background thread NCCL's one
// thread would move the second half itself, call by call (bench/results/nccl-h200-sockets.md).
constexpr std::uint64_t kLadenBytes = 16U << 10;
constexpr std::uint64_t kStillLadenBytes = 4U << 10;
constexpr Duration kLadenFor = std::chrono::milliseconds(5);
// Meanwhile it sleeps for kRest at a time once nothing has moved for kRestsAfter: the GPU's pauses
// are longer than that, and a thread that yields still burns a CPU that no other thread wants.
constexpr Duration kRestsAfter = std::chrono::microseconds(300);
constexpr Duration kRest = std::chrono::microseconds(50);

void move_this_thread(const std::vector<std::uint32_t>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const std::uint32_t cpu : cpus) CPU_SET(cpu, &set);
  // May fail where the cpuset shrank meanwhile, which only costs locality.
  sched_setaffinity(0, sizeof(set), &set);
}

}  // namespace

Poller::Poller(PollerConfig config, std::unique_ptr<Backend> backend)
    : config_(std::move(config)),
      backend_(std::move(backend)),
      stall_watch_(config_.stall_timeout),
      clock_(read_clock(), config_.longest_gap),
      last_turn_(backend_time()),
      last_moved_(last_turn_),
      lane_page_(config_.page),
      called_at_(last_turn_) {}

Poller::~Poller() {
  stop();
  backend_->clients().clear();
  log::info("{}: closed; it {}{}", config_.name, backend_->summary(), late_turns_.text());
}

TimePoint Poller::read_clock() {
  timespec ts{};
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return TimePoint(std::chrono::seconds(ts.tv_sec) + std::chrono::nanoseconds(ts.tv_nsec));
}

Status Poller::start() {
  baton_.take();
  const BatonHold hold(*this);
  if (thread_.joinable()) return {};
  if (config_.wake == nullptr) config_.wake = ZTCP_TRY(WakeEvent::make());
  if (!std::exchange(has_started_backend_, true)) backend_->start();
  thread_ = ZTCP_TRY(start_thread(config_.thread, [this] {
    // Also runs where a logger ends this thread (pthread_exit()).
    struct NoteEnd {
      std::atomic<bool>& has_ended;
      ~NoteEnd() { has_ended.store(true); }
    } note_end{has_thread_ended_};
    move_this_thread(config_.cpus);
    if (config_.on_thread_start) config_.on_thread_start();
    if (config_.dedicated) {
      run_dedicated();
    } else {
      run_shared();
    }
    if (config_.on_thread_end) config_.on_thread_end();
  }));
  return {};
}

void Poller::stop() {
  stopping_.store(true);
  if (!thread_.joinable()) return;
  config_.wake->signal();
  thread_.join();
}

void Poller::end_process(TimePoint end) {
  backend_->limit_waits(end);
  process_ends_.store(end.time_since_epoch().count());
  if (!thread_.joinable() || has_thread_ended_.load() ||
      std::this_thread::get_id() == thread_.get_id())
    return note_process_end();
  config_.wake->signal();
}

void Poller::note_process_end() {
  const Duration::rep end = process_ends_.exchange(0);
  if (end == 0) return;
  say_last_words(*this, TimePoint(Duration(end)));
  has_ended_process_.store(true);
}

bool Poller::turn() {
  try {
    backend_->poll();
    last_turn_ = clock_.at(read_clock());
    last_outcome_ = backend_->turn(last_turn_, doorbell_);
  } catch (const std::exception& exception) {
    last_outcome_.moved = last_outcome_.leaves_unsent = true;  // Unknown, so assumed.
    note_exception(exception.what());
  }
  if (last_outcome_.moved) last_moved_ = last_turn_;
  if (lane_page_.is_due(last_turn_)) [[unlikely]]
    lane_page_.refresh(last_turn_, *backend_, late_turns_, outstanding_);
  turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return last_outcome_.moved;
}

// A turn on the background thread, which goes on polling: the next one is due at once.
bool Poller::background_turn() {
  const bool moved = turn();
  late_turns_.on_turn(last_turn_);
  late_turns_.expect(last_turn_);
  return moved;
}

void Poller::say_counts(const char* when) {
  backend_->deferred_log().add(log::Level::kInfo, [&] {
    return config_.name + ": " + when + "; so far it " + backend_->summary() + late_turns_.text();
  });
}

void Poller::note_exception(const char* what) {
  if (std::exchange(has_thrown_, true)) return;
  backend_->deferred_log().add(log::Level::kWarn, [&] {
    return config_.name + ": an exception ended a turn: " + what +
           ": frames were lost, and connections on it may stall; if memory is short, raise the "
           "process's limit (ulimit -v, the job's memory)";
  });
}

void Poller::check_elsewhere(TimePoint now) {
  if (now < next_check_elsewhere_ || !config_.on_check) return;
  next_check_elsewhere_ = now + kCheckInterval;
  try {
    config_.on_check(now);
  } catch (const std::bad_alloc&) {
    // Only a hint is lost: a peer's death is also detected by its silence, later.
  }
}

// The background thread, when it has taken over, may be scheduled out between two turns for long:
// there are more threads than CPUs, or its cgroup's time is used up. Then the caller takes the
// turns back, and that thread finds out when it runs again. If it was scheduled out inside a turn,
// it holds the baton, and all wait.
bool Poller::try_take_turn() {
  if (!has_taken_over_.load()) return baton_.try_take();
  const auto stuck_at = stall_watch_.stuck_at(turns_, read_clock);
  if (!stuck_at || !baton_.try_take()) return false;
  // Otherwise the thread was in a long turn, which has just ended: it keeps the turns.
  if (*stuck_at == turns_.load(std::memory_order_relaxed)) has_taken_over_.store(false);
  return true;
}

void Poller::run_shared_turn() {
  if (!try_take_turn()) return;
  const bool moved = turn();
  const bool idle_long = !moved && idle() >= config_.spin;
  const bool calls_thread =
      config_.takes_over && last_outcome_.moved_bytes >= kLadenBytes && !is_called_.exchange(true);
  if (calls_thread) called_at_ = last_turn_;
  if (give_baton() == 0 && idle_long) callers_yielder_.yield();
  if (calls_thread && sleeping_.load()) config_.wake->signal();
}

// Every hold of the baton ends here. Returns the number of turns that were run for other threads:
// without a dedicated thread, another thread may have rung while this one held the baton, failed to
// take it and gone on, so this one sends its posts. At most kTurnsForOthers: threads that post
// without a pause run turns in test(), too, and the caller has work of its own.
std::uint64_t Poller::give_baton() {
  give_and_speak();
  if (config_.dedicated) return 0;
  std::uint64_t turns = 0;
  for (; turns < kTurnsForOthers && doorbell_.any() && baton_.try_take(); ++turns) {
    turn();
    give_and_speak();
  }
  return turns;
}

void Poller::give_and_speak() {
  const bool leaves_some = last_outcome_.leaves_unsent;
  std::vector<DeferredLog::Line> lines;
  if (DeferredLog& deferred_log = backend_->deferred_log(); !deferred_log.empty()) [[unlikely]]
    lines = deferred_log.take();
  if (config_.dedicated) {
    baton_.give();
  } else {
    baton_.give_and_check();
  }
  if (leaves_some && sleeps_long_.load()) config_.wake->signal();
  for (const DeferredLog::Line& line : lines) log::write(line.level, __FILE__, __LINE__, line.text);
}

// Called without the baton: control calls can take it while the thread sleeps.
void Poller::sleep(TimePoint deadline, Duration longest) {
  const TimePoint now = backend_time();
  const Duration shortest = config_.max_sleep / kSleepResolution;
  const Duration timeout =
      deadline <= now ? shortest : std::clamp(deadline - now, shortest, longest);
  late_turns_.expect(now + timeout);
  sleeping_.store(true);
  // Shared: a thread that rings also runs the turn, and wakes this one only to take over.
  const bool rung = config_.dedicated ? doorbell_.any() : is_called_.load();
  if (!rung && !stopping_.load() && process_ends_.load() == 0) config_.wake->sleep(timeout);
  sleeping_.store(false);
}

void Poller::run_dedicated() {
  while (!stopping_.load(std::memory_order_relaxed)) {
    if (must_end_process()) [[unlikely]]
      note_process_end();
    if (!baton_.try_take_politely()) {
      late_turns_.expect_none();  // Another thread runs a turn.
      cpu_pause();
      continue;
    }
    const bool moved = background_turn();
    const TimePoint now = last_turn_;
    const Duration unmoved = idle();
    const bool tired = unmoved >= (1 + kYieldFactor) * config_.spin && outstanding_ == 0;
    const TimePoint deadline = tired ? backend_->next_deadline() : TimePoint{};
    give_baton();
    check_elsewhere(now);
    if (tired) {
      sleep(deadline, config_.max_sleep);
    } else if (!moved && unmoved >= config_.spin) {
      yielder_.yield();
    } else {
      cpu_pause();
    }
  }
}

// The background thread's next turn was overdue, and another thread ran it. Counted without the
// baton: callers that run turns without a pause may hold it at every attempt of this thread.
void Poller::note_taken_back() {
  late_turns_.on_turn(backend_time());
  late_turns_.expect_none();
}

// A thread that posts only rings, and leaves the turns to this thread. A thread that rings while
// this one gives up, or while the turns are taken back, may not have noticed, so one more turn
// follows.
void Poller::run_laden() {
  has_taken_over_.store(true);
  TimePoint laden_at = backend_time();
  bool is_first = true;
  while (!stopping_.load(std::memory_order_relaxed) &&
         has_taken_over_.load(std::memory_order_relaxed)) {
    if (must_end_process()) [[unlikely]]
      break;
    if (!baton_.try_take_politely()) {
      late_turns_.expect_none();  // Another thread runs a turn.
      cpu_pause();
      continue;
    }
    if (std::exchange(is_first, false)) late_turns_.expect(called_at_);
    const bool moved = background_turn();
    const TimePoint now = last_turn_;
    if (last_outcome_.moved_bytes >= kStillLadenBytes) laden_at = now;
    const Duration unmoved = idle();
    give_and_speak();
    check_elsewhere(now);
    if (now - laden_at >= kLadenFor) break;
    if (moved) continue;
    if (unmoved >= kRestsAfter) {
      late_turns_.expect(now + kRest);
      config_.wake->sleep(kRest);
    } else if (unmoved >= config_.spin) {
      yielder_.yield();
    } else {
      cpu_pause();
    }
  }
  if (!has_taken_over_.exchange(false)) note_taken_back();
  is_called_.store(false);
  run_shared_turn();
}

void Poller::run_shared() {
  std::uint64_t turns_seen = 0;
  Duration longest = config_.max_sleep;
  while (!stopping_.load(std::memory_order_relaxed)) {
    if (must_end_process()) [[unlikely]]
      note_process_end();
    if (is_called_.load()) run_laden();
    // While NCCL's threads run turns, they serve the deadlines, too.
    TimePoint deadline = kNever;
    bool is_idle = false;
    if (baton_.try_take()) {
      if (turns_ == turns_seen) {
        is_idle = !background_turn() && !last_outcome_.leaves_unsent;
        deadline = backend_->next_deadline();
      }
      turns_seen = turns_;
      turns_seen += give_baton();  // Turns for other threads count as this thread's.
    }
    check_elsewhere(backend_time());
    if (is_idle) longest = std::min(2 * longest, config_.max_idle_sleep);
    if (!is_idle || longest < config_.max_sleep) longest = config_.max_sleep;
    sleeps_long_.store(longest > config_.max_sleep);
    // A caller's turn before that store did not see it, and would not end a longer sleep. The
    // caller gave the baton before it looked, so a look at the baton makes its turn's count
    // visible.
    (void)baton_.is_held();
    sleep(deadline, turns_ == turns_seen ? longest : config_.max_sleep);
    sleeps_long_.store(false, std::memory_order_relaxed);
  }
}

}  // namespace ztcp::comms
