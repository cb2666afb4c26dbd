// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/listener.h"

#include <algorithm>
#include <array>
#include <sys/random.h>

#include "transport/core/log.h"
#include "transport/core/process_mark.h"
#include "transport/ustack/comm.h"

namespace ztcp::ustack {
namespace {

constexpr std::size_t kAddressBytes = 16;
constexpr std::size_t kPortBytes = 2;
static_assert(kAddressBytes + kPortBytes + sizeof(msg::Cookie) == ListenAddress::kCapacity);

// ::ffff:0:0/96, RFC 4291 section 2.5.5.2.
constexpr std::array<std::byte, 12> kMappedPrefix = {
    std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0},    std::byte{0},
    std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0xff}, std::byte{0xff}};

}  // namespace

ListenAddress to_listen_address(Endpoint endpoint, const msg::Cookie& cookie) {
  ListenAddress out;
  auto at = std::copy(kMappedPrefix.begin(), kMappedPrefix.end(), out.bytes.begin());
  for (int shift = 24; shift >= 0; shift -= 8) {
    *at++ = static_cast<std::byte>(endpoint.address.value >> static_cast<unsigned>(shift));
  }
  *at++ = static_cast<std::byte>(endpoint.port >> 8U);
  *at++ = static_cast<std::byte>(endpoint.port & 0xffU);
  std::copy(cookie.begin(), cookie.end(), at);
  return out;
}

Result<ParsedListenAddress> parse_listen_address(const ListenAddress& address) {
  const auto& bytes = address.bytes;
  if (!std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), bytes.begin())) {
    return fail(Errc::kProtocol, "listen address: not IPv4");
  }
  const auto at = [&](std::size_t i) { return std::to_integer<std::uint32_t>(bytes[i]); };
  ParsedListenAddress out;
  out.endpoint.address.value = at(12) << 24U | at(13) << 16U | at(14) << 8U | at(15);
  out.endpoint.port = static_cast<std::uint16_t>(at(16) << 8U | at(17));
  std::copy_n(bytes.begin() + kAddressBytes + kPortBytes, out.cookie.size(), out.cookie.begin());
  return out;
}

UstackListener::UstackListener(std::shared_ptr<Nic> nic, const msg::Cookie& cookie)
    : nic_(std::move(nic)),
      cookie_(cookie),
      address_(to_listen_address(nic_->listen_endpoint, cookie)) {}

Result<std::unique_ptr<UstackListener>> UstackListener::open(std::shared_ptr<Nic> nic) {
  msg::Cookie cookie{};
  if (getrandom(cookie.data(), cookie.size(), 0) != static_cast<ssize_t>(cookie.size())) {
    return fail_errno("getrandom");
  }
  Poller& poller = *nic->poller;
  std::unique_ptr<UstackListener> listener(new UstackListener(std::move(nic), cookie));
  ZTCP_CHECK(poller.with_engine([&](Engine& engine, TimePoint) -> Status {
    listener->engine_ = &engine;
    return engine.listen(cookie, *listener);
  }));
  return listener;
}

UstackListener::~UstackListener() {
  if (in_forked_child()) {
    new std::shared_ptr<Nic>(std::move(nic_));  // NOLINT: leaked on purpose, see CommBase.
    return;
  }
  nic_->poller->with_engine([&](Engine& engine, TimePoint now) {
    engine.unlisten(cookie_);
    for (CommState* state : arrived_) {
      state->fail_now(now, Error{Errc::kAborted, 0, "listener closed"});
      state->close(now);
    }
  });
}

void UstackListener::on_session(TimePoint now, std::unique_ptr<msg::RecvSession> session) {
  if (arrived_.size() >= kBacklog) {
    session->abort(now);
    return;
  }
  const auto state = CommState::adopt(now, *nic_->poller, *engine_, std::move(session));
  if (!state) return;  // The table is full; the peer was told by RST.
  arrived_.push_back(*state);
  waiting_.store(arrived_.size(), std::memory_order_release);
}

Result<std::unique_ptr<RecvComm>> UstackListener::accept() {
  if (in_forked_child()) return fail(Errc::kForked, "accept");
  nic_->poller->progress();
  if (nic_->poller->link_is_lost()) {
    log::warn("accepting on port {} failed: {}: {}", nic_->listen_endpoint.port,
              nic_->poller->lost_reason(), nic_->poller->lost_advice());
    return tl::unexpected(nic_->poller->lost_error());
  }
  if (waiting_.load(std::memory_order_acquire) == 0) return nullptr;
  CommState* state = nullptr;
  nic_->poller->with_engine([&](Engine&, TimePoint) {
    state = arrived_.front();
    arrived_.pop_front();
    waiting_.store(arrived_.size(), std::memory_order_release);
  });
  return std::make_unique<UstackRecvComm>(nic_, *state);
}

}  // namespace ztcp::ustack
