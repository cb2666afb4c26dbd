// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/listener.h"

#include <algorithm>
#include <array>
#include <sys/random.h>

#include "transport/core/log.h"
#include "transport/core/process_mark.h"

namespace ztcp::ustack {
namespace {

constexpr std::uint32_t kIpv4 = 4;

// Of a handle's bytes, from their begin to their end.
class Writer {
 public:
  explicit Writer(PeerHandle& out) : at_(out.bytes.begin()) {}
  void put(std::uint32_t value, int bytes) {
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
      *at_++ = static_cast<std::byte>(value >> static_cast<unsigned>(shift));
  }
  void put(const msg::Cookie& cookie) { at_ = std::copy(cookie.begin(), cookie.end(), at_); }

 private:
  std::array<std::byte, PeerHandle::kCapacity>::iterator at_;
};

class Reader {
 public:
  explicit Reader(const PeerHandle& in) : at_(in.bytes.begin()) {}
  std::uint32_t take(int bytes) {
    std::uint32_t value = 0;
    for (int i = 0; i < bytes; ++i) value = value << 8U | std::to_integer<std::uint32_t>(*at_++);
    return value;
  }
  Endpoint take_endpoint() {
    const Ipv4Address address{take(4)};
    return {address, static_cast<std::uint16_t>(take(2))};
  }
  msg::Cookie take_cookie() {
    msg::Cookie cookie{};
    std::copy_n(at_, cookie.size(), cookie.begin());
    return cookie;
  }

 private:
  std::array<std::byte, PeerHandle::kCapacity>::const_iterator at_;
};

}  // namespace

PeerHandle to_handle(const ListenAddress& address) {
  PeerHandle out{.kind = TransportKind::kUstack};
  Writer writer(out);
  writer.put(address.watch.address.value, 4);
  writer.put(address.watch.port, 2);
  writer.put(kIpv4, 2);
  writer.put(0, 4);
  writer.put(address.endpoint.address.value, 4);
  writer.put(address.endpoint.port, 2);
  writer.put(address.cookie);
  return out;
}

Result<ListenAddress> parse_handle(const PeerHandle& handle) {
  Reader reader(handle);
  ListenAddress out;
  out.watch = reader.take_endpoint();
  if (reader.take(2) != kIpv4) return fail(Errc::kProtocol, "handle: not IPv4");
  if (reader.take(4) != 0) return fail(Errc::kProtocol, "handle: reserved bytes");
  out.endpoint = reader.take_endpoint();
  out.cookie = reader.take_cookie();
  return out;
}

UstackListener::UstackListener(std::shared_ptr<Nic> nic, const msg::Cookie& cookie)
    : nic_(std::move(nic)),
      cookie_(cookie),
      handle_(to_handle({nic_->listen_endpoint,
                         nic_->death_watch != nullptr ? nic_->death_watch->endpoint() : Endpoint{},
                         cookie})) {
  if (nic_->death_watch != nullptr) nic_->death_watch->expect(cookie);
}

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
    new std::shared_ptr<Nic>(std::move(nic_));  // NOLINT: leaked on purpose: it is the parent's.
    return;
  }
  nic_->poller->with_engine([&](Engine& engine, TimePoint now) {
    engine.unlisten(cookie_);
    for (UstackRecvComm* comm : arrived_) {
      comm->fail_now(now, Error{Errc::kAborted, 0, "listener closed"});
      comm->end(now);
    }
  });
}

void UstackListener::on_session(TimePoint, std::unique_ptr<msg::RecvSession> session) {
  if (arrived_.size() >= kBacklog) {
    session->abort();
    return;
  }
  const auto comm = UstackRecvComm::adopt(*nic_->poller, *engine_, std::move(session));
  if (!comm) return;  // The table is full; the peer was told by RST.
  arrived_.push_back(*comm);
  waiting_.store(arrived_.size(), std::memory_order_release);
}

Result<RecvCommPtr> UstackListener::accept() {
  if (in_forked_child()) return fail(Errc::kForked, "accept");
  nic_->poller->progress();
  if (nic_->poller->link_is_lost()) {
    log::warn("accepting on port {} failed: {}: {}", nic_->listen_endpoint.port,
              nic_->poller->lost_reason(), nic_->poller->lost_advice());
    return tl::unexpected(nic_->poller->lost_error());
  }
  if (waiting_.load(std::memory_order_acquire) == 0) return nullptr;
  UstackRecvComm* comm = nullptr;
  nic_->poller->with_engine([&](Engine&, TimePoint) {
    comm = arrived_.front();
    arrived_.pop_front();
    waiting_.store(arrived_.size(), std::memory_order_release);
  });
  return comm->accepted(nic_);
}

}  // namespace ztcp::ustack
