// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/look/window.h"

#include <algorithm>

namespace ztcp::stat {
namespace {

double since_start_seconds(const stats::Process& process) {
  const std::int64_t lived = process.updated_realtime_ns - process.started_realtime_ns;
  return static_cast<double>(std::max<std::int64_t>(lived, 0)) / 1e9;
}

}  // namespace

Window::Window(const stats::Snapshot* before, const stats::Snapshot& after, double seconds)
    : before_(before),
      after_(after),
      seconds_(before == nullptr ? since_start_seconds(after.process) : seconds) {
  for (const stats::Connection& c : after.connections) now_connections_.emplace(c.id, &c);
  if (before == nullptr) return;
  for (const stats::Lane& lane : before->lanes)
    lanes_.emplace(std::pair{lane.device, lane.number}, &lane);
  for (const stats::Connection& c : before->connections) connections_.emplace(c.id, &c);
  for (const stats::Flow& f : before->flows) flows_.emplace(std::pair{f.connection, f.number}, &f);
}

std::uint64_t Window::count(const stats::Lane& lane, stats::Counter counter) const {
  const auto then = lanes_.find({lane.device, lane.number});
  const std::uint64_t now = lane.counters[counter];
  return then == lanes_.end() ? now : growth(now, then->second->counters[counter]);
}

std::uint64_t Window::count(const stats::Device& device, stats::Counter counter) const {
  std::uint64_t sum = 0;
  for (const stats::Lane& lane : after_.lanes)
    if (lane.device == device.index) sum += count(lane, counter);
  return sum;
}

std::uint64_t Window::count(stats::Counter counter) const {
  std::uint64_t sum = 0;
  for (const stats::Lane& lane : after_.lanes) sum += count(lane, counter);
  return sum;
}

double Window::rate(const stats::Lane& lane, stats::Counter counter) const {
  double seconds = seconds_;
  if (const auto then = lanes_.find({lane.device, lane.number}); then != lanes_.end()) {
    const auto passed = lane.updated_monotonic_ns - then->second->updated_monotonic_ns;
    if (passed > 0) seconds = static_cast<double>(passed) / 1e9;
  }
  return seconds > 0 ? static_cast<double>(count(lane, counter)) / seconds : 0;
}

double Window::rate(const stats::Device& device, stats::Counter counter) const {
  double sum = 0;
  for (const stats::Lane& lane : after_.lanes)
    if (lane.device == device.index) sum += rate(lane, counter);
  return sum;
}

double Window::rate(stats::Counter counter) const {
  double sum = 0;
  for (const stats::Lane& lane : after_.lanes) sum += rate(lane, counter);
  return sum;
}

Progress Window::progress(const stats::Connection& connection) const {
  const stats::Connection* then = before(connection);
  if (then == nullptr) return {connection.bytes, connection.messages, seconds_};
  const auto passed = connection.updated_monotonic_ns - then->updated_monotonic_ns;
  return {growth(connection.bytes, then->bytes), growth(connection.messages, then->messages),
          passed > 0 ? static_cast<double>(passed) / 1e9 : seconds_};
}

const stats::Connection* Window::before(const stats::Connection& connection) const {
  const auto then = connections_.find(connection.id);
  return then == connections_.end() ? nullptr : then->second;
}

const stats::Flow* Window::before(const stats::Flow& flow) const {
  const auto then = flows_.find({flow.connection, flow.number});
  return then == flows_.end() ? nullptr : then->second;
}

std::array<stats::Histogram::Counts, stats::kSizeClasses> Window::counts(
    const stats::Latency& latency) const {
  auto grown = latency.by_class;
  if (before_ == nullptr) return grown;
  const auto then = std::find_if(before_->latencies.begin(), before_->latencies.end(),
                                 [&](const stats::Latency& other) {
                                   return other.device == latency.device &&
                                          other.way == latency.way && other.peer == latency.peer;
                                 });
  if (then == before_->latencies.end()) return grown;
  for (std::size_t size = 0; size < grown.size(); ++size)
    for (std::size_t i = 0; i < grown[size].size(); ++i)
      grown[size][i] = static_cast<std::uint32_t>(growth(grown[size][i], then->by_class[size][i]));
  return grown;
}

std::uint64_t Window::throttled_ns() const {
  const std::uint64_t now = after_.process.cpu_throttled_ns;
  return before_ == nullptr ? now : growth(now, before_->process.cpu_throttled_ns);
}

std::uint64_t Window::stolen_ns() const {
  const std::uint64_t now = after_.process.cpu_stolen_ns;
  return before_ == nullptr ? now : growth(now, before_->process.cpu_stolen_ns);
}

const stats::Connection* Window::connection_of(const stats::Flow& flow) const {
  const auto found = now_connections_.find(flow.connection);
  return found == now_connections_.end() ? nullptr : found->second;
}

Window window_of(const Page& page, const Look* before, const Look& after) {
  if (before != nullptr)
    for (const Page& then : before->pages)
      if (then.file == page.file && then.error.empty() &&
          then.snapshot.process.pid == page.snapshot.process.pid &&
          then.snapshot.process.started_realtime_ns == page.snapshot.process.started_realtime_ns)
        return {&then.snapshot, page.snapshot,
                static_cast<double>(after.monotonic_ns - before->monotonic_ns) / 1e9};
  return {nullptr, page.snapshot, 0};
}

}  // namespace ztcp::stat
