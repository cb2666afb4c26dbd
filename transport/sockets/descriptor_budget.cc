// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/descriptor_budget.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <fmt/format.h>

#include "core/fd.h"

namespace ztcp::sockets {
namespace {

// The reserve for the application's files and data loaders: 1/16 of the limit, at most 256.
constexpr std::size_t kReservePart = 16;
constexpr std::size_t kMostReserved = 256;
constexpr Duration kComplaintInterval = std::chrono::minutes(1);
// Enough for an all-to-all of 1024 ranks with eight NCCL devices.
constexpr std::size_t kEnoughDescriptors = 65536;

struct DescriptorLimits {
  std::size_t soft = 0;
  std::size_t hard = 0;
};
DescriptorLimits descriptor_limits() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return {1024, 1024};
  return {static_cast<std::size_t>(limit.rlim_cur), static_cast<std::size_t>(limit.rlim_max)};
}

std::size_t reserve_of(std::size_t soft) { return std::min(soft / kReservePart, kMostReserved); }

// How to raise the limit before the job starts.
std::string descriptor_mend(const DescriptorLimits& limit) {
  const std::size_t wanted = std::min(limit.hard, std::max(kEnoughDescriptors, 2 * limit.soft));
  if (wanted > limit.soft) return fmt::format("ulimit -n {}", wanted);
  return fmt::format(
      "the hard limit is {}, too: nofile in /etc/security/limits.conf, LimitNOFILE= of a unit, or "
      "docker run --ulimit nofile={}",
      limit.hard, kEnoughDescriptors);
}

}  // namespace

std::size_t DescriptorBudget::usable() {
  const std::size_t soft = descriptor_limits().soft;
  return soft - reserve_of(soft);
}

std::size_t DescriptorBudget::left() const {
  const std::size_t of_process = usable();
  const std::size_t open = in_use();
  const std::size_t own = connections();
  return std::min(of_process > open ? of_process - open : 0, most_ > own ? most_ - own : 0);
}

bool DescriptorBudget::has_room() {
  if (left() != 0) return true;
  const Fd next(eventfd(0, EFD_CLOEXEC));
  return next && may_keep(next.get());
}

bool DescriptorBudget::may_keep(int descriptor) {
  const auto below = static_cast<std::size_t>(descriptor);
  const std::size_t own = connections();
  others_.store(below > own ? below - own : 0, kRelaxed);
  return below < usable() && own < most_;
}

std::string DescriptorBudget::shortage(TimePoint now, const Error& error) {
  const Duration::rep at = now.time_since_epoch().count();
  Duration::rep next = next_complaint_.load(kRelaxed);
  if (at < next || !next_complaint_.compare_exchange_strong(next, at + kComplaintInterval.count()))
    return {};
  if (error.sys_errno == ENFILE)
    return "no descriptor for another connection: this machine may open no more files; retrying; "
           "sudo sysctl -w fs.file-max=1000000";
  const DescriptorLimits limit = descriptor_limits();
  // The application can have used up the table before any connection got a descriptor that would
  // have told the number.
  const bool is_full = !Fd(eventfd(0, EFD_CLOEXEC)) && errno == EMFILE;
  return fmt::format(
      "no descriptor for another connection: {} of {} (ulimit -n) are in use, {} of them by "
      "connections, and {} are left to the application; retrying; raise the limit before the job "
      "starts ({}), or let NCCL open fewer connections (NCCL_NCHANNELS_PER_NET_PEER=1)",
      is_full ? limit.soft : in_use(), limit.soft, connections(), reserve_of(limit.soft),
      descriptor_mend(limit));
}

std::string descriptors_text(std::size_t connections) {
  const DescriptorLimits limit = descriptor_limits();
  const std::size_t usable = DescriptorBudget::usable();
  if (usable >= connections) return {};
  return fmt::format("; at most {} connections in this process (ulimit -n is {}, hard limit {})",
                     usable, limit.soft, limit.hard);
}

}  // namespace ztcp::sockets
