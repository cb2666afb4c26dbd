// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/bootstrap.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/ztcp_perf/bootstrap_wire.h"
#include "tools/ztcp_perf/failure.h"
#include "tools/ztcp_perf/interrupt.h"

namespace ztcp::perf {
Bootstrap::Bootstrap(const Options& options)
    : rank_(*options.rank),
      size_(options.ranks),
      timeout_(options.connect_timeout_s),
      silence_timeout_(std::chrono::duration_cast<Clock::duration>(timeout_)) {
  try {
    if (rank_ == 0) {
      gather_ranks(options);
    } else {
      join(options);
    }
    introduce();
  } catch (const Failure& failure) {
    abort(failure.what());
    close_all();
    throw;
  }
}

Bootstrap::~Bootstrap() { close_all(); }

void Bootstrap::close_all() noexcept {
  for (Peer& peer : peers_)
    if (peer.fd >= 0) close(peer.fd);
  peers_.clear();
}

// Tells every rank the place of every rank.
void Bootstrap::introduce() {
  for (const Bytes& place : all_gather(bytes_of(my_place()))) places_.push_back(text_of(place));
}

void Bootstrap::send(Peer& peer, FrameType type, std::span<const std::byte> payload) {
  const Bytes all = make_frame(type, payload);
  std::span<const std::byte> rest(all);
  const auto deadline = Clock::now() + silence_timeout_;
  while (!rest.empty()) {
    const ssize_t n = ::send(peer.fd, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (n > 0) {
      rest = rest.subspan(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN || errno == EINTR) {
      if (Clock::now() > deadline) lost(peer);
      wait_for(peer.fd, POLLOUT);
    } else {
      // It may have sent the reason before it ended.
      read_some(peer);
      heed(peer);
      lost(peer);
    }
  }
}

bool Bootstrap::read_some(Peer& peer) {
  // A sender that never pauses must not keep this rank from its deadlines.
  constexpr int kChunksAtOnce = 256;
  std::array<std::byte, 4096> chunk;  // Small: `ulimit -s` may limit the stack.
  for (int i = 0; i < kChunksAtOnce && !peer.reader.is_full(); ++i) {
    const ssize_t n = recv(peer.fd, chunk.data(), chunk.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return true;
    if (n <= 0) return false;
    peer.heard = Clock::now();
    if (!peer.reader.take(std::span(chunk).first(static_cast<std::size_t>(n)))) return false;
  }
  return true;
}

// Throws when the peer asks to stop. Rank 0 forwards the reason first.
void Bootstrap::heed(Peer& peer) {
  for (const Frame& frame : peer.reader.frames()) {
    if (frame.type != FrameType::kAbort) continue;
    const std::string reason = text_of(frame.payload);
    if (rank_ == 0) abort(reason);
    throw Stopped(reason);
  }
}

void Bootstrap::lost(const Peer& peer) {
  const std::string who =
      places_.empty()
          ? fmt::format("rank {}", peer.rank)
          : fmt::format("rank {} ({})", peer.rank, places_[static_cast<std::size_t>(peer.rank)]);
  const std::string reason = fmt::format(
      "{} is gone: it was killed, its machine failed, or the network cut its connection", who);
  if (rank_ == 0) abort(reason);
  throw Stopped(reason);
}

void Bootstrap::malformed(std::size_t rank) { fail("rank {} sent a malformed frame", rank); }

Frame Bootstrap::await(Peer& peer, std::optional<Clock::time_point> deadline,
                       const std::string& what) {
  const auto began = Clock::now();
  while (peer.reader.frames().empty()) {
    throw_if_interrupted();
    // A failure of another rank must be noticed while waiting for this one.
    check();
    if (!peer.reader.frames().empty()) break;
    if (deadline && Clock::now() > *deadline) fail("waited too long for {}", what);
    if (!deadline && Clock::now() > std::max(began, peer.heard) + silence_timeout_)
      fail("{} has said nothing for {:g} s", what,
           std::chrono::duration<double>(silence_timeout_).count());
    beat();
    if (peer.reader.frames().empty()) wait_for(peer.fd, POLLIN);
  }
  return peer.reader.pop();
}

std::vector<Bytes> Bootstrap::gather(std::span<const std::byte> mine) {
  if (rank_ != 0) {
    send(peers_[0], FrameType::kData, mine);
    return {};
  }
  std::vector<Bytes> all(static_cast<std::size_t>(size_));
  all[0].assign(mine.begin(), mine.end());
  for (Peer& peer : peers_)
    all[static_cast<std::size_t>(peer.rank)] =
        await(peer, std::nullopt, fmt::format("rank {}", peer.rank)).payload;
  return all;
}

std::vector<Bytes> Bootstrap::all_gather(std::span<const std::byte> mine) {
  std::vector<Bytes> all = gather(mine);
  if (rank_ == 0) {
    Bytes packed;
    for (const Bytes& bytes : all) {
      const auto size = static_cast<std::uint32_t>(bytes.size());
      const auto size_bytes = std::as_bytes(std::span(&size, 1));
      packed.insert(packed.end(), size_bytes.begin(), size_bytes.end());
      packed.insert(packed.end(), bytes.begin(), bytes.end());
    }
    for (Peer& peer : peers_) send(peer, FrameType::kData, packed);
    return all;
  }
  all.resize(static_cast<std::size_t>(size_));
  const Frame frame = await(peers_[0], std::nullopt, "rank 0");
  std::span<const std::byte> rest(frame.payload);
  for (Bytes& bytes : all) {
    std::uint32_t size = 0;
    if (rest.size() < sizeof size) malformed(0);
    std::memcpy(&size, rest.data(), sizeof size);
    rest = rest.subspan(sizeof size);
    if (rest.size() < size) malformed(0);
    bytes.assign(rest.begin(), rest.begin() + size);
    rest = rest.subspan(size);
  }
  return all;
}

void Bootstrap::check() {
  throw_if_interrupted();
  for (Peer& peer : peers_) {
    if (peer.fd < 0) continue;
    const bool open = read_some(peer);
    heed(peer);
    // A finished rank closes after its last frame; no more frames are expected from it then.
    if (!open && peer.reader.frames().empty()) lost(peer);
  }
}

void Bootstrap::beat() {
  const auto now = Clock::now();
  if (now < next_beat_) return;
  next_beat_ = now + std::min<Clock::duration>(silence_timeout_ / 8, std::chrono::seconds(1));
  for (Peer& peer : peers_)
    if (peer.fd >= 0 && wait_for(peer.fd, POLLOUT, 0)) send(peer, FrameType::kAlive, {});
}

void Bootstrap::set_silence_timeout(std::chrono::duration<double> timeout) {
  silence_timeout_ = std::chrono::duration_cast<Clock::duration>(timeout);
}

void Bootstrap::abort(const std::string& reason) noexcept {
  const Bytes frame = make_frame(FrameType::kAbort, bytes_of(reason));
  for (const Peer& peer : peers_)
    if (peer.fd >= 0) send_at_once(peer.fd, frame);
}

}  // namespace ztcp::perf
