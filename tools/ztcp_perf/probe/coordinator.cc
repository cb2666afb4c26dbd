// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/coordinator.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

namespace ztcp::perf::probe {
namespace {

// An agent ends a measurement by itself at --pair-timeout; later than this it hangs.
constexpr double kGraceSeconds = 3;

}  // namespace

Coordinator::Coordinator(const ProbeOptions& options, Agents& agents, std::vector<Host> hosts)
    : options_(options), agents_(agents), began_(Clock::now()) {
  results_.hosts = std::move(hosts);
}

std::size_t Coordinator::ready() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(results_.hosts, [](const Host& host) { return host.failure.empty(); }));
}

int Coordinator::device_of(std::size_t host, std::size_t rail) const {
  return results_.hosts[host].facts.nics[rail].device;
}

std::size_t Coordinator::rails_of(const Pair& pair) const {
  return std::min(results_.hosts[pair.a].facts.nics.size(),
                  results_.hosts[pair.b].facts.nics.size());
}

void Coordinator::measure() {
  // Hosts by their place in the schedule.
  std::vector<std::size_t> places;
  for (std::size_t host = 0; host < results_.hosts.size(); ++host) {
    if (!results_.hosts[host].failure.empty()) continue;
    places.push_back(host);
    results_.rails = std::max(results_.rails, results_.hosts[host].facts.nics.size());
  }
  const auto rounds = rounds_of(places.size());
  results_.rounds = rounds.size();
  const bool shows_progress = isatty(STDERR_FILENO) != 0;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    if (shows_progress)
      std::fprintf(stderr, "\rround %zu of %zu, %zu pairs ", i + 1, rounds.size(),
                   rounds[i].size());
    std::vector<Pair> pairs;
    for (const Pair& pair : rounds[i]) pairs.push_back({places[pair.a], places[pair.b]});
    run_round(pairs);
  }
  if (shows_progress) std::fprintf(stderr, "\r\033[K");
}

void Coordinator::run_round(const std::vector<Pair>& pairs) {
  const std::size_t at_once =
      options_.at_once > 0 ? static_cast<std::size_t>(options_.at_once) : pairs.size();
  std::map<std::size_t, std::shared_ptr<Task>> tasks;  // By both hosts.
  std::size_t next = 0;
  std::size_t running = 0;
  const auto settle = [&](const std::shared_ptr<Task>& task) {
    if (!task->ends[0].has_answered || !task->ends[1].has_answered || advance(*task)) return;
    tasks.erase(task->pair.a);
    tasks.erase(task->pair.b);
    --running;
  };
  while (true) {
    for (; next < pairs.size() && running < at_once; ++next) {
      const Pair& pair = pairs[next];
      if (!results_.hosts[pair.a].failure.empty() || !results_.hosts[pair.b].failure.empty() ||
          rails_of(pair) == 0)
        continue;
      const auto task = std::make_shared<Task>();
      task->pair = pair;
      tasks[pair.a] = tasks[pair.b] = task;
      ++running;
      begin(*task);
    }
    if (running == 0) return;
    auto until = Clock::time_point::max();
    for (const auto& [host, task] : tasks) until = std::min(until, task->deadline);
    if (const auto event = agents_.wait(until)) {
      const auto found = tasks.find(event->host);
      if (found == tasks.end()) {
        if (!event->line) give_up(event->host, event->loss);
        continue;
      }
      const std::shared_ptr<Task> task = found->second;
      answer(*task, event->host, *event);
      settle(task);
      continue;
    }
    std::vector<std::shared_ptr<Task>> late;
    for (const auto& [host, task] : tasks)
      if (host == task->pair.a && Clock::now() >= task->deadline) late.push_back(task);
    for (const auto& task : late) {
      expire(*task);
      settle(task);
    }
  }
}

// Asks both ends for the current step of the current rail.
void Coordinator::begin(Task& task) {
  const std::size_t hosts[] = {task.pair.a, task.pair.b};
  std::string handles[2];
  for (int i = 0; i < 2; ++i)
    if (task.ends[i].answer) handles[i] = task.ends[i].answer->value("handle", "");
  task.deadline = Clock::now() + seconds(options_.pair_timeout_s + kGraceSeconds);
  for (Task::End& end : task.ends) end = {};
  for (int i = 0; i < 2; ++i) {
    if (task.step == Task::Step::kListen) {
      agents_.send(hosts[i], {{"do", "listen"}, {"device", device_of(hosts[i], task.rail)}});
    } else {
      agents_.send(hosts[i], {{"do", "measure"},
                              {"handle", handles[1 - i]},
                              {"leads", i == 0},
                              {"seconds", options_.seconds},
                              {"limit_s", options_.pair_timeout_s}});
    }
  }
}

void Coordinator::answer(Task& task, std::size_t host, const Agents::Event& event) {
  const int mine = host == task.pair.a ? 0 : 1;
  Task::End& end = task.ends[mine];
  const std::size_t other = mine == 0 ? task.pair.b : task.pair.a;
  if (!event.line) {
    give_up(host, event.loss);
    task.is_lost = true;
    end.has_answered = true;
    agents_.send(other, {{"do", "stop"}});
    return;
  }
  if (end.has_answered) return;
  end.has_answered = true;
  end.answer = *event.line;
  const char* const wanted = task.step == Task::Step::kListen ? "handle" : "measured";
  const auto found = end.answer->find(wanted);
  if (const auto error = text_in(*end.answer, "error")) {
    end.error = *error;
  } else if (found == end.answer->end() ||
             !(task.step == Task::Step::kListen ? found->is_string() : found->is_object())) {
    end.error = "its agent gave a malformed answer";
  }
  if (end.error.empty()) return;
  // Without this the other end would wait until its own timeout. Its later error only follows.
  Task::End& others = task.ends[1 - mine];
  if (others.error.empty())
    end.error = with_last_words(host, results_.hosts[host].name + ": " + end.error);
  else
    end.error.clear();
  agents_.send(other, {{"do", "stop"}});
}

// Both answers are due, also from an end that was stopped.
void Coordinator::expire(Task& task) {
  const std::size_t hosts[] = {task.pair.a, task.pair.b};
  for (int i = 0; i < 2; ++i) {
    if (task.ends[i].has_answered) continue;
    give_up(hosts[i],
            fmt::format("hangs: no answer within {:g} s (--pair-timeout {:g})",
                        options_.pair_timeout_s + kGraceSeconds, options_.pair_timeout_s));
    task.ends[i].has_answered = true;
    task.is_lost = true;
  }
}

// The plugin's last warning tells the reason.
std::string Coordinator::with_last_words(std::size_t host, std::string text) {
  const std::string words = agents_.take_last_words(host);
  return words.empty() ? text : fmt::format("{} (\"{}\")", text, words);
}

bool Coordinator::advance(Task& task) {
  if (task.is_lost) return false;
  const bool has_failed = !task.ends[0].error.empty() || !task.ends[1].error.empty();
  if (!has_failed && task.step == Task::Step::kListen) {
    task.step = Task::Step::kMeasure;
    begin(task);
    return true;
  }
  record(task);
  if (++task.rail == rails_of(task.pair)) return false;
  task.step = Task::Step::kListen;
  begin(task);
  return true;
}

void Coordinator::record(const Task& task) {
  PairResult& result = results_.pairs.emplace_back();
  result.a = task.pair.a;
  result.b = task.pair.b;
  result.rail = task.rail;
  for (const Task::End& end : task.ends)
    if (result.failure.empty()) result.failure = end.error;
  if (!result.failure.empty()) return;
  const Measured leader = measured_of(task.ends[0].answer->at("measured"));
  const Measured follower = measured_of(task.ends[1].answer->at("measured"));
  result.latency = leader.latency;
  result.forward = {leader.forward_gbit_per_s, leader.resent};
  result.backward = {leader.backward_gbit_per_s, follower.resent};
  result.both_gbit_per_s = leader.both_gbit_per_s;
}

Results Coordinator::take_results() {
  results_.took_s = std::chrono::duration<double>(Clock::now() - began_).count();
  return std::move(results_);
}

}  // namespace ztcp::perf::probe
