// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Two hosts, a cable between them, and virtual time that jumps from event to event. A host is any
// class with the loop's five functions: tcp::Stack, ustack::Engine.
//
// It is a failure when nothing is scheduled while the awaited condition is false ("stuck"), or when
// time stands still: a lost timer and a timer that is never satisfied look like that.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/clock.h"
#include "core/frame.h"
#include "tests/sim/frames.h"
#include "tests/sim/wire.h"

namespace ztcp::sim {

struct WorldOptions {
  link::Impairment forward;   // From host 0 to host 1.
  link::Impairment backward;  // From host 1 to host 0.
  std::uint64_t seed = 1;
  std::size_t receive_pieces = 1;  // Buffers a received frame is spread over.
  bool checksum_good = false;      // The NIC checked (and dropped bad ones): see Wire.
  std::size_t burst = 32;
  // A host polls its NIC only this often, as a poller busy with a burst does: the frames that came
  // meanwhile are one burst. Zero: at each event.
  std::array<Duration, 2> turn_interval{};
};

template <class Node>
class World {
 public:
  using Options = WorldOptions;

  World(Node& first, Node& second, const Options& options)
      : options_(options),
        nodes_{&first, &second},
        wires_{Wire(options.forward, options.seed * 2 + 1),
               Wire(options.backward, options.seed * 2 + 2)},
        burst_(options.burst) {}

  TimePoint now() const { return now_; }
  // The cable that leaves host `from`.
  Wire& wire(std::size_t from) { return wires_[from]; }
  // Called after every event; returns the fault it found, or nothing.
  void add_invariant(std::function<std::string()> check) {
    invariants_.push_back(std::move(check));
  }

  // Host `host` does not run until then (SIGSTOP, no CPU); frames to it wait on the cable.
  void stop(std::size_t host, TimePoint until) { stopped_until_[host] = until; }

  // The user of host `host`, called in each of its turns, between frames and timers, as requests
  // reach a poller. Returns the latest time of its next call.
  void set_actor(std::size_t host, std::function<TimePoint(TimePoint)> actor) {
    actors_[host] = std::move(actor);
  }

  // Runs until `done` holds. False, with why(), when an invariant broke, nothing is scheduled, or
  // `limit` of virtual time has passed.
  [[nodiscard]] bool run_until(const std::function<bool()>& done,
                               Duration limit = std::chrono::minutes(10)) {
    const TimePoint end = now_ + limit;
    turn_all();
    while (why_.empty()) {
      if (done()) return true;
      const TimePoint next = next_event();
      if (next == kNever) return fail("stuck: nothing is scheduled");
      if (next > end) return fail("not done after the virtual time allowed");
      step_to(next);
    }
    return false;
  }

  // Runs for `span` of virtual time.
  [[nodiscard]] bool run_for(Duration span) {
    const TimePoint end = now_ + span;
    turn_all();
    while (why_.empty() && next_event() <= end) step_to(next_event());
    now_ = std::max(now_, end);
    return why_.empty();
  }

  // Runs until nothing at all is scheduled.
  [[nodiscard]] bool run_until_idle(Duration limit = std::chrono::minutes(10)) {
    return run_until([&] { return next_event() == kNever; }, limit);
  }

  // Frames the hosts still hold.
  std::size_t held_frames() const { return held_.size(); }
  std::uint64_t events() const { return events_; }
  const std::string& why() const { return why_; }

 private:
  static constexpr std::uint64_t kMaxEventsAtOneTime = 100'000;

  TimePoint next_event() const {
    TimePoint next = kNever;
    for (std::size_t i = 0; i < 2; ++i)
      next =
          std::min(next, next_turn(i, std::min({wires_[1 - i].next_arrival(),
                                                nodes_[i]->next_deadline(), actor_deadlines_[i]})));
    return next;
  }

  // The time at which host i handles `event`.
  TimePoint next_turn(std::size_t i, TimePoint event) const {
    const Duration interval = options_.turn_interval[i];
    event = std::max(event, stopped_until_[i]);
    if (interval == Duration::zero() || event == kNever) return event;
    const TimePoint earliest = std::max(event, now_);
    const Duration past = earliest.time_since_epoch() % interval;
    return past == Duration::zero() ? earliest : earliest + (interval - past);
  }

  void step_to(TimePoint next) {
    if (next > now_) {
      now_ = next;
      events_at_this_time_ = 0;
    } else if (++events_at_this_time_ > kMaxEventsAtOneTime) {
      fail("time stands still: a deadline is never satisfied");
      return;
    }
    ++events_;
    turn_all();
  }

  void turn_all() {
    turn(0);
    turn(1);
    for (const auto& check : invariants_)
      if (const std::string wrong = check(); !wrong.empty()) fail(wrong);
  }

  // One turn of a poller: frames in, timers, frames out.
  void turn(std::size_t i) {
    if (next_turn(i, now_) != now_) return;
    Node& node = *nodes_[i];
    Wire& incoming = wires_[1 - i];
    std::vector<std::unique_ptr<ReceivedFrame>> memory;
    std::vector<RxFrame> frames;
    while (incoming.next_arrival() <= now_ && frames.size() < options_.burst) {
      memory.push_back(std::make_unique<ReceivedFrame>(incoming.take(), options_.receive_pieces,
                                                       options_.checksum_good));
      frames.push_back(memory.back()->view());
    }
    if (!frames.empty()) node.on_frames(now_, frames);
    for (std::size_t f = 0; f < frames.size(); ++f)
      if (frames[f].kept) held_.emplace(memory[f].get(), std::move(memory[f]));
    // Frames that were not kept end here: ASan finds a view that outlives its frame.
    memory.clear();
    if (actors_[i]) actor_deadlines_[i] = actors_[i](now_);
    node.on_timers(now_);
    for (;;) {
      const std::size_t count = node.collect(now_, burst_);
      for (std::size_t f = 0; f < count; ++f)
        for (Bytes& bytes : put_on_cable(burst_[f])) wires_[i].send(now_, std::move(bytes));
      if (count < burst_.size()) break;
    }
    take_released(node);
  }

  void take_released(Node& node) {
    std::array<RxFrame, 16> released;
    for (;;) {
      const std::size_t count = node.take_released(released);
      for (std::size_t f = 0; f < count; ++f)
        if (held_.erase(released[f].handle) != 1) fail("a frame was released that is not held");
      if (count < released.size()) break;
    }
  }

  bool fail(const std::string& what) {
    if (!why_.empty()) return false;
    std::ostringstream out;
    out << what << "; seed " << options_.seed << ", at "
        << std::chrono::duration<double, std::milli>(now_.time_since_epoch()).count()
        << " ms, event " << events_ << ", held frames " << held_.size();
    for (std::size_t i = 0; i < 2; ++i) {
      const auto& c = wires_[i].counters();
      out << "\n  from host " << i << ": offered " << c.offered << " delivered " << c.delivered
          << " lost " << c.lost << " queue full " << c.queue_full << " too long " << c.too_long;
      const TimePoint deadline = nodes_[i]->next_deadline();
      out << "; its next deadline: ";
      if (deadline == kNever)
        out << "never";
      else
        out << "in " << (deadline - now_).count() << " ns";
    }
    why_ = out.str();
    return false;
  }

  Options options_;
  std::array<Node*, 2> nodes_;
  std::array<Wire, 2> wires_;
  std::vector<TxFrame> burst_;
  std::vector<std::function<std::string()>> invariants_;
  std::array<std::function<TimePoint(TimePoint)>, 2> actors_;
  std::array<TimePoint, 2> actor_deadlines_{kNever, kNever};
  std::array<TimePoint, 2> stopped_until_{TimePoint::min(), TimePoint::min()};
  std::unordered_map<void*, std::unique_ptr<ReceivedFrame>> held_;
  TimePoint now_{std::chrono::seconds(1)};
  std::uint64_t events_ = 0;
  std::uint64_t events_at_this_time_ = 0;
  std::string why_;
};

}  // namespace ztcp::sim
