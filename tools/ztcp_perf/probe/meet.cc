// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The coordinator's first part: every host's version, clock and facts.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "tools/ztcp_perf/probe/coordinator.h"
#include "tools/ztcp_perf/probe/wall_clock.h"

namespace ztcp::perf::probe {
namespace {

// The reading with the shortest round trip tells the offset.
constexpr int kClockReadings = 4;

}  // namespace

void Coordinator::meet(bool is_greeted) {
  std::vector<Greeting> greetings(results_.hosts.size());
  std::size_t open = 0;
  for (std::size_t host = 0; host < greetings.size(); ++host) {
    if (!results_.hosts[host].failure.empty()) continue;
    ++open;
    greetings[host].is_greeted = is_greeted;
    if (is_greeted) ask_next(host, greetings[host]);
  }
  const auto deadline = Clock::now() + seconds(options_.host_timeout_s);
  while (open > 0) {
    const auto event = agents_.wait(deadline);
    if (!event) break;
    Greeting& greeting = greetings[event->host];
    if (greeting.is_done) {
      // An agent that ended between its facts and the first measurement.
      if (!event->line) give_up(event->host, event->loss);
      continue;
    }
    if (event->line) {
      greet(event->host, greeting, *event->line);
    } else {
      greeting.is_done = true;
      give_up(event->host, event->loss);
    }
    open -= greeting.is_done;
  }
  for (std::size_t host = 0; host < greetings.size(); ++host)
    if (results_.hosts[host].failure.empty() && !greetings[host].is_done)
      give_up(host, fmt::format("no {} within {:g} s (--host-timeout)",
                                greetings[host].is_greeted ? "answer" : "sign of an agent",
                                options_.host_timeout_s));
}

void Coordinator::greet(std::size_t host, Greeting& greeting, const Json& line) {
  const std::int64_t now_ns = wall_clock_ns();
  Host& one = results_.hosts[host];
  const auto refuse = [&](std::string reason) {
    greeting.is_done = true;
    give_up(host, std::move(reason));
  };
  if (!greeting.is_greeted) {
    if (!line.contains("ztcp_probe")) return;
    if (whole_number_in(line, "ztcp_probe") != kProtocol)
      return refuse(fmt::format("its ztcp_perf is version {}, which speaks another protocol",
                                text_in(line, "version").value_or("unknown")));
    greeting.is_greeted = true;
    return ask_next(host, greeting);
  }
  if (line.contains("ztcp_probe")) return;  // Rank 0's own agent is a process and greets, too.
  if (const auto error = text_in(line, "error")) return refuse(with_last_words(host, *error));
  if (greeting.clocks < kClockReadings) {
    const auto clock = line.find("clock_ns");
    if (clock == line.end() || !clock->is_number_integer())
      return refuse("its agent gave a malformed answer");
    const double error_s = static_cast<double>(now_ns - greeting.asked_ns) * 1e-9 / 2;
    if (greeting.clocks == 0 || error_s < one.clock_error_s) {
      one.clock_error_s = error_s;
      // In floating point: a malformed number can't overflow.
      one.clock_offset_s = (static_cast<double>(clock->get<std::int64_t>()) -
                            static_cast<double>(greeting.asked_ns)) *
                               1e-9 -
                           error_s;
    }
    ++greeting.clocks;
    return ask_next(host, greeting);
  }
  const auto facts = line.find("facts");
  if (facts == line.end() || !facts->is_object())
    return refuse("its agent gave a malformed answer");
  one.facts = facts_of(*facts);
  one.has_facts = true;
  greeting.is_done = true;
}

void Coordinator::ask_next(std::size_t host, Greeting& greeting) {
  const bool is_clock = greeting.clocks < kClockReadings;
  greeting.asked_ns = wall_clock_ns();
  agents_.send(host, {{"do", is_clock ? "clock" : "facts"}});
}

void Coordinator::give_up(std::size_t host, std::string reason) {
  if (results_.hosts[host].failure.empty()) results_.hosts[host].failure = std::move(reason);
  agents_.drop(host);
}

}  // namespace ztcp::perf::probe
