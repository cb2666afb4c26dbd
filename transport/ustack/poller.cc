// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/poller.h"

#include <algorithm>
#include <cassert>
#include <csignal>
#include <ctime>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "transport/core/log.h"

namespace ztcp::ustack {
namespace {

// How often the state of the link is looked at.
constexpr Duration kLookInterval = std::chrono::milliseconds(1);
// How often its counts are held against what is worth a warning.
constexpr Duration kWatchInterval = std::chrono::seconds(1);
// Between two lines that say that no connection is left.
constexpr Duration kSummaryInterval = std::chrono::minutes(1);
// Dedicated: this many times `spin` is spent yielding before the thread sleeps.
constexpr int kYieldFactor = 4;
// The shortest sleep is this part of the longest. Pacing asks for a turn every few microseconds;
// a thread that only stands in for absent callers need not follow it that closely.
constexpr int kSleepResolution = 8;
// Shared: turns that a holder of the baton runs for posts of others before it goes on.
constexpr int kTurnsForOthers = 2;

void bump(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) {
  // One writer at a time (the holder of the baton), so no locked instruction is needed.
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

void move_this_thread(const std::vector<std::uint32_t>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const std::uint32_t cpu : cpus) CPU_SET(cpu, &set);
  // A cpuset that shrank meanwhile only costs locality.
  sched_setaffinity(0, sizeof(set), &set);
}

}  // namespace

Poller::Poller(PollerConfig config, std::unique_ptr<link::Link> link, const EngineConfig& engine)
    : config_(std::move(config)),
      link_(std::move(link)),
      engine_(engine),
      wake_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      transmitter_(link_->capabilities()),
      end_log_(config_.name) {
  last_turn_ = last_work_ = read_clock();
}

std::string Poller::lost_reason() const {
  return "NIC " + config_.name + " (" + config_.link_description + ") " +
         (link_state() == link::LinkState::kReset ? "was reset by its host or its firmware"
                                                  : "was taken out of this machine");
}

const char* Poller::lost_advice() const {
  return link_state() == link::LinkState::kReset
             ? "start the job again"
             : "put it back, run ztcp_setup and start the job again";
}

Error Poller::lost_error() const {
  return {Errc::kNoDevice, 0,
          link_state() == link::LinkState::kReset ? "NIC reset" : "NIC taken out"};
}

Poller::~Poller() {
  stopping_.store(true);
  if (thread_.joinable()) {
    wake();
    thread_.join();
  }
  clients_.clear();
  log::info("{}: closed; it {}", config_.name, summary(counts()));
  if (wake_fd_ >= 0) close(wake_fd_);
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
  if (wake_fd_ < 0) return fail_errno("eventfd");
  // The new thread inherits the mask, so that no signal handler of the host ever runs on it.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  if (const int rc = pthread_sigmask(SIG_SETMASK, &all, &before); rc != 0) {
    return fail(Errc::kSystem, "pthread_sigmask", rc);
  }
  Status started;
  try {
    thread_ = std::thread([this] {
      move_this_thread(config_.cpus);
      if (config_.on_thread_start) config_.on_thread_start();
      if (config_.dedicated) {
        run_dedicated();
      } else {
        run_shared();
      }
      if (config_.on_thread_end) config_.on_thread_end();
    });
    pthread_setname_np(thread_.native_handle(), ("ztcp-" + config_.name).substr(0, 15).c_str());
  } catch (const std::system_error& e) {
    started = fail(Errc::kSystem, "pthread_create", e.code().value());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

Result<std::size_t> Poller::attach(std::unique_ptr<PollerClient> client) {
  if (!free_indices_.empty()) {
    const std::size_t index = free_indices_.back();
    free_indices_.pop_back();
    clients_[index] = std::move(client);
    return index;
  }
  if (clients_.size() == Doorbell::kCapacity) return fail(Errc::kFull, "attach comm");
  clients_.push_back(std::move(client));
  return clients_.size() - 1;
}

void Poller::retire(std::size_t client) { retired_.push_back(client); }

bool Poller::turn() {
  const TimePoint now = read_clock();
  const Duration gap = now - last_turn_;
  last_turn_ = now;
  engine_.note_poll_gap(now, gap);
  const auto gap_ns = static_cast<std::uint64_t>(gap.count());
  if (gap_ns > counters_.longest_gap_ns.load(std::memory_order_relaxed)) {
    counters_.longest_gap_ns.store(gap_ns, std::memory_order_relaxed);
  }
  if (now >= next_look_) look_around(now);

  // Frames first, timers after: what arrived during a gap must not be taken for lost.
  bool moved = receive(now);
  doorbell_.drain([&](std::size_t client) {
    // A comm may be retired between the ring and this visit.
    if (client < clients_.size() && clients_[client] != nullptr) {
      clients_[client]->on_doorbell(now);
      moved = true;
    }
  });
  engine_.on_timers(now);
  release_held();
  moved |= transmitter_.run(engine_, *link_, now);

  if (!retired_.empty()) bury_retired(now);
  bump(counters_.turns);
  if (moved) {
    last_work_ = now;
  } else {
    bump(counters_.idle_turns);
  }
  return moved;
}

void Poller::bury_retired(TimePoint now) {
  for (const std::size_t client : retired_) {
    clients_[client].reset();
    free_indices_.push_back(client);
  }
  retired_.clear();
  // The job is over, or will make new ones, which some do in a loop.
  if (free_indices_.size() != clients_.size() || now < next_summary_) return;
  next_summary_ = now + kSummaryInterval;
  say_counts("no connection is left");
}

NicCounts Poller::counts() const {
  return {.tcp = engine_.tcp_counters(),
          .acceptor = engine_.acceptor_counters(),
          .link = link_->counters(),
          .ring_full = transmitter_.refusals()};
}

void Poller::say_counts(const std::string& when) {
  to_say_.push_back(
      {log::Level::kInfo, config_.name + ": " + when + "; so far it " + summary(counts())});
}

bool Poller::receive(TimePoint now) {
  bool any = false;
  for (std::size_t round = 0; round < kBurstsPerTurn; ++round) {
    const std::size_t count = link_->receive(rx_);
    if (count == 0) break;
    any = true;
    const std::span frames = std::span(rx_).first(count);
    engine_.on_frames(now, frames);
    link_->release(frames);
    if (count < rx_.size()) break;
  }
  return any;
}

void Poller::release_held() {
  while (const std::size_t count = engine_.take_released(rx_)) {
    // They were kept until now; release() passes over frames that still are.
    for (RxFrame& frame : std::span(rx_).first(count)) frame.kept = false;
    link_->release(std::span(rx_).first(count));
    if (count < rx_.size()) break;
  }
}

void Poller::look_around(TimePoint now) {
  next_look_ = now + kLookInterval;
  if (now >= next_watch_) {
    next_watch_ = now + kWatchInterval;
    for (const std::string& line : watch_.look(now, counts()))
      to_say_.push_back({log::Level::kWarn, config_.name + ": " + line});
  }
  const link::LinkState state = link_->state();
  const link::LinkState before = link_state_.exchange(state, std::memory_order_relaxed);
  if (!link::is_lost(state)) return;
  if (!link::is_lost(before))
    to_say_.push_back(
        {log::Level::kWarn, config_.name + ": " + lost_reason() +
                                "; every connection on it has failed: " + lost_advice()});
  for_each_client([now](PollerClient& client) { client.on_link_lost(now); });
}

void Poller::look_elsewhere(TimePoint now) {
  if (now < next_look_elsewhere_ || !config_.on_look) return;
  next_look_elsewhere_ = now + kLookInterval;
  config_.on_look(*this, now);
}

void Poller::run_shared_turn() {
  if (!baton_.try_take()) return;
  const bool moved = turn();
  const bool idle_long = !moved && last_turn_ - last_work_ >= config_.spin;
  if (!give_baton() && idle_long) sched_yield();
}

// Every hold ends here. True when turns were run for others: where nobody spins, somebody may have
// rung while we held the baton, found it taken and gone on without a turn, and theirs is ours to
// send. Not for ever: who posts without a pause runs turns in test(), too, and our caller has work
// of its own.
bool Poller::give_baton() {
  give_and_speak();
  if (config_.dedicated) return false;
  int turns = 0;
  for (; turns < kTurnsForOthers && doorbell_.any() && baton_.try_take(); ++turns) {
    turn();
    give_and_speak();
  }
  return turns != 0;
}

void Poller::give_and_speak() {
  std::vector<Line> said;
  if (!to_say_.empty()) [[unlikely]]
    said.swap(to_say_);
  if (config_.dedicated) {
    baton_.give();
  } else {
    baton_.give_and_look();
  }
  for (const Line& line : said) log::write(line.level, __FILE__, __LINE__, line.text);
}

void Poller::wake() {
  const std::uint64_t one = 1;
  // EAGAIN means that it is already signalled.
  [[maybe_unused]] const ssize_t written = write(wake_fd_, &one, sizeof(one));
}

// The baton is not held: control calls go on while the thread sleeps.
void Poller::sleep(TimePoint deadline) {
  const TimePoint now = read_clock();
  const Duration shortest = config_.max_sleep / kSleepResolution;
  const Duration timeout =
      deadline <= now ? shortest : std::clamp(deadline - now, shortest, config_.max_sleep);
  sleeping_.store(true);
  // Shared, whoever rings also runs the turn.
  const bool rung = config_.dedicated && doorbell_.any();
  if (!rung && !stopping_.load()) {
    const timespec ts{.tv_sec = timeout.count() / 1'000'000'000,
                      .tv_nsec = timeout.count() % 1'000'000'000};
    pollfd fd{.fd = wake_fd_, .events = POLLIN, .revents = 0};
    if (ppoll(&fd, 1, &ts, nullptr) == 1) {
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t got = read(wake_fd_, &count, sizeof(count));
    }
  }
  sleeping_.store(false);
}

void Poller::run_dedicated() {
  while (!stopping_.load(std::memory_order_relaxed)) {
    if (!baton_.try_take_politely()) {
      cpu_pause();
      continue;
    }
    const bool moved = turn();
    const TimePoint now = last_turn_;
    const Duration idle = now - last_work_;
    const bool tired = idle >= (1 + kYieldFactor) * config_.spin && outstanding_ == 0;
    const TimePoint deadline = tired ? engine_.next_deadline() : TimePoint{};
    give_baton();
    look_elsewhere(now);
    if (tired) {
      sleep(deadline);
    } else if (!moved && idle >= config_.spin) {
      sched_yield();
    } else {
      cpu_pause();
    }
  }
}

void Poller::run_shared() {
  std::uint64_t turns_seen = 0;
  while (!stopping_.load(std::memory_order_relaxed)) {
    // While NCCL's threads run turns there is nothing for us to do, deadlines included.
    TimePoint deadline = kNever;
    if (baton_.try_take()) {
      if (counters_.turns.load(std::memory_order_relaxed) == turns_seen) {
        turn();
        deadline = engine_.next_deadline();
      }
      give_baton();
      // Those run for others are ours, too.
      turns_seen = counters_.turns.load(std::memory_order_relaxed);
    }
    look_elsewhere(read_clock());
    sleep(deadline);
  }
}

}  // namespace ztcp::ustack
