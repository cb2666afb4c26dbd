// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Opening connections: shortages of descriptors and memory, and the descriptors kept in reserve.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <new>
#include <utility>

#include "transport/sockets/kernel/advice.h"
#include "transport/sockets/lane.h"

namespace ztcp::sockets {
namespace {

constexpr Duration kDialComplaintInterval = std::chrono::minutes(1);

}  // namespace

Result<Stream*> Lane::dial(TimePoint now, Endpoint remote, StreamEvents& events,
                           const DialSettings& settings) {
  try {
    return dial_now(now, remote, events, settings);
  } catch (const std::bad_alloc&) {
    return fail(Errc::kOutOfMemory, "dial: memory", ENOMEM);
  }
}

Result<Stream*> Lane::dial_now(TimePoint now, Endpoint remote, StreamEvents& events,
                               const DialSettings& settings) {
  auto fd = sockets::dial(config_.device, config_.times, remote, settings);
  if (fd && !config_.descriptors->may_keep(fd->get()))
    fd = fail(Errc::kOutOfMemory, "dial: descriptors", EMFILE);
  if (!fd) {
    note_shortage(now, fd.error());
    return tl::unexpected<Error>(fd.error());
  }
  auto stream = std::make_unique<SocketStream>(host(), counters_, std::move(*fd),
                                               SocketStream::State::kConnecting, &events,
                                               now + config_.connect_timeout);
  if (!watch(*stream)) return fail(to_errc(errno), "epoll_ctl", errno);
  return &add(std::move(stream));
}

std::string Lane::route_advice(IpAddress remote) const {
  return own_address_advice(remote, local_addresses());
}

void Lane::note_shortage(TimePoint now, const Error& error) {
  std::string what;
  if (error.sys_errno == EMFILE || error.sys_errno == ENFILE) {
    what = config_.descriptors->shortage(now, error);
  } else if (now >= next_complaint_) {
    what = shortage(error, config_.device);
    if (!what.empty()) next_complaint_ = now + kDialComplaintInterval;
  }
  if (what.empty()) return;
  deferred_log_.add(log::Level::kWarn, [&] { return config_.device.name + ": " + what; });
}

// Whether `further` streams leave one descriptor for each session that may still be opened and for
// each pending stream. At most half of the descriptors are kept for sessions, because more may be
// opened than a limit allows (a shell's usual limit is 1024).
bool Lane::has_spare_for(std::size_t further) const {
  const std::size_t free = config_.descriptors->left();
  const std::size_t all = config_.descriptors->connections() + free;
  const std::size_t left = std::min(sessions_.to_come(), all / 2);
  return further + left + std::min(config_.max_pending_streams, all / 4) <= free;
}

}  // namespace ztcp::sockets
