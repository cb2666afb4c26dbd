// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Queue pairs between two verbs sessions in one thread, as the sessions see them: each reliable and
// in order, in any order among themselves; bytes are read late, rows of slots written slot by slot,
// completions wait to be polled. Seeded; it also checks the rules of verbs.
//
// A rail may fail: then the work requests posted at an end complete no more there, but those that
// have left its NIC still travel, and are carried out at the other end until that end fences the
// rail.
#pragma once

#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "transport/verbs/session/rails.h"
#include "transport/verbs/session/work.h"

namespace ztcp::sim {

// Each rail's device has another key for the same memory.
inline verbs::RailKeys keys_of(std::uint32_t what) {
  verbs::RailKeys out{};
  for (std::uint32_t rail = 0; rail < out.size(); ++rail) out[rail] = 100 * what + rail;
  return out;
}

// Memory that the peer may write to.
struct Registered {
  const std::byte* begin = nullptr;
  std::size_t size_bytes = 0;
  verbs::RailKeys rkeys{};
};

class QueuePairWire {
 public:
  struct Counts {
    std::uint64_t works = 0;
    std::uint64_t doorbells = 0;
    std::uint64_t completions = 0;  // Completions of sends.
    std::uint64_t receives = 0;
    std::uint64_t receive_doorbells = 0;
    std::uint64_t immediates = 0;
  };

  // One end: takes its session's work requests and makes its completions.
  class End final : public verbs::WorkQueues {
   public:
    Status post(std::uint32_t queue_pair, const verbs::WorkRequest& request) override {
      ++counts.doorbells;
      ++counts.works;
      Flying flying{request, {}, 0, generations[queue_pair]};
      if (is_fenced[queue_pair]) complain("work for a fenced queue pair");
      if (request.is_inline) flying.bytes.assign(request.local, request.local + request.size_bytes);
      out[queue_pair].push_back(std::move(flying));
      return {};
    }
    Status post_receives(std::uint32_t queue_pair, std::uint32_t count) override {
      ++counts.receive_doorbells;
      counts.receives += count;
      credits[queue_pair] += count;
      return {};
    }

    struct Flying {
      verbs::WorkRequest request;
      std::vector<std::byte> bytes;  // For inline requests and those in flight at a fence.
      std::size_t written = 0;
      std::uint32_t generation = 0;
      bool is_roaming = false;
    };
    struct Told {
      std::uint32_t queue_pair = 0;
      bool is_immediate = false;
      std::uint32_t immediate = 0;
      std::uint32_t size_bytes = 0;
      std::uint64_t id = 0;
    };

    std::vector<std::deque<Flying>> out;
    // By queue pair: its generation, because rails rejoin with new ones, and whether it is fenced.
    std::vector<std::uint32_t> generations;
    std::vector<bool> is_fenced;
    std::vector<std::uint32_t> credits;
    std::deque<Told> completions;  // One queue for all, as a connection has it.
    std::vector<Registered> memory;
    std::function<void(const char*)> complain;
    // Called for bytes that the peer writes.
    std::function<void(const std::byte* to, std::size_t size)> on_write;
    Counts counts;
  };

  // `lkeys`: the keys of all memory that is sent from.
  QueuePairWire(std::vector<std::uint32_t> rails, const verbs::RailKeys& lkeys, std::uint64_t seed)
      : rails_(std::move(rails)), lkeys_(lkeys), random_(seed) {
    for (End* end : {&left, &right}) {
      end->out.resize(rails_.size());
      end->credits.resize(rails_.size());
      end->generations.resize(rails_.size());
      end->is_fenced.resize(rails_.size());
      end->complain = [this](const char* what) { complain(what); };
    }
  }

  // Advances one queue pair by one event. False: there is none.
  bool step() {
    std::vector<std::pair<End*, std::uint32_t>> busy;
    for (End* end : {&left, &right})
      for (std::uint32_t i = 0; i < end->out.size(); ++i)
        if (!end->out[i].empty()) busy.emplace_back(end, i);
    if (busy.empty()) return false;
    const auto [end, queue_pair] = busy[random_() % busy.size()];
    advance(*end, end == &left ? right : left, queue_pair);
    return true;
  }

  // Destroys the end's queue pairs on the rail: nothing arrives over them, and none of their
  // completions is polled. Some of the posted requests have left the NIC.
  void fence(End& end, std::uint32_t rail) {
    for (std::uint32_t i = 0; i < rails_.size(); ++i) {
      if (rails_[i] != rail) continue;
      end.is_fenced[i] = true;
      end.credits[i] = 0;
      std::erase_if(end.completions, [&](const auto& told) { return told.queue_pair == i; });
      auto& out = end.out[i];
      while (!out.empty() && random_() % 2 == 0) out.pop_back();
      for (End::Flying& flying : out) {
        if (!flying.request.is_inline && !flying.is_roaming)
          flying.bytes.assign(flying.request.local,
                              flying.request.local + flying.request.size_bytes);
        flying.is_roaming = true;
      }
    }
  }
  // Makes new queue pairs.
  void rejoin(End& end, std::uint32_t rail) {
    for (std::uint32_t i = 0; i < rails_.size(); ++i) {
      if (rails_[i] != rail) continue;
      end.is_fenced[i] = false;
      ++end.generations[i];
    }
  }

  const std::string& problem() const { return problem_; }
  std::uint64_t draw() { return random_(); }

  End left;
  End right;

 private:
  static constexpr std::size_t kUnit = 32;

  void complain(const std::string& what) {
    if (problem_.empty()) problem_ = what;
  }

  void advance(End& from, End& to, std::uint32_t queue_pair) {
    End::Flying& flying = from.out[queue_pair].front();
    const verbs::WorkRequest& request = flying.request;
    if (to.is_fenced[queue_pair] || flying.generation != to.generations[queue_pair])
      return from.out[queue_pair].pop_front();
    // Control writes are seen half done; payload would take too many steps.
    const bool is_small = request.kind == verbs::WorkRequest::Kind::kWrite;
    const std::size_t left_bytes = request.size_bytes - flying.written;
    const std::size_t size = is_small ? std::min(kUnit, left_bytes) : left_bytes;
    if (size > 0) write(to, flying, size, rails_[queue_pair]);
    flying.written += size;
    if (flying.written < request.size_bytes) return;
    if (request.kind == verbs::WorkRequest::Kind::kWriteImmediate) {
      if (to.credits[queue_pair] == 0) {
        // With several rails a receive may be missing for a while: senders wait and repeat.
        if (rails_.back() == 0) complain("an immediate found no receive posted");
        flying.written = 0;
        return;
      }
      --to.credits[queue_pair];
      ++to.counts.immediates;
      to.completions.push_back({queue_pair, true, request.immediate, request.size_bytes, 0});
    }
    if (request.is_signalled && !flying.is_roaming) {
      ++from.counts.completions;
      from.completions.push_back({queue_pair, false, 0, 0, request.id});
    }
    from.out[queue_pair].pop_front();
  }

  void write(End& to, const End::Flying& flying, std::size_t size, std::uint32_t rail) {
    const verbs::WorkRequest& request = flying.request;
    auto* const at = reinterpret_cast<std::byte*>(request.remote) + flying.written;
    bool is_inside = false;
    for (const Registered& one : to.memory)
      is_inside |= one.rkeys[rail] == request.rkey && at >= one.begin &&
                   at + size <= one.begin + one.size_bytes;
    if (!is_inside) return complain("a write outside of registered memory");
    if (!request.is_inline && request.lkey != lkeys_[rail]) complain("another rail's local key");
    if (to.on_write) to.on_write(at, size);
    const std::byte* const bytes =
        request.is_inline || flying.is_roaming ? flying.bytes.data() : request.local;
    std::memcpy(at, bytes + flying.written, size);
  }

  const std::vector<std::uint32_t> rails_;  // By queue pair.
  const verbs::RailKeys lkeys_;
  std::mt19937_64 random_;
  std::string problem_;
};

}  // namespace ztcp::sim
