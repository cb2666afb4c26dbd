// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/watch/peer_watch.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <endian.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "core/socket_address.h"

namespace ztcp::watch {
namespace {

constexpr std::uint32_t kMagic = 0x6863777a;  // "zwch"
constexpr std::uint32_t kVersion = 2;
constexpr std::uint32_t kSharesNic = 1;  // A flag.
constexpr std::size_t kHostBytes = 64;
constexpr int kEventsPerPoll = 32;
constexpr int kCallersPerPoll = 8;

// The hello's layout on the wire.
struct Hello {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t pid = 0;
  std::uint32_t flags = 0;
  std::array<std::uint64_t, 2> nic{};  // Big-endian: an IPv6 address.
  Proof proof{};
  std::array<char, kHostBytes> host{};
};

int new_socket(IpAddress address) {
  return socket(address.is_v4() ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
                0);
}

std::string host_name() {
  std::array<char, kHostBytes> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return {};
  return name.data();
}

// For log lines.
std::string printable(const char* text, std::size_t size) {
  std::string out(text, strnlen(text, size));
  for (char& c : out)
    if (c <= ' ' || c > '~') c = '?';
  return out;
}

bool is_same(const Peer& a, const Peer& b) {
  return a.nic == b.nic && a.pid == b.pid && a.host == b.host;
}

// The error comes from the peer's kernel, not from a timeout or a router on the path.
bool is_word_of_peer(int error) { return error == ECONNRESET || error == EPIPE; }

bool is_later(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

PeerWatch::PeerWatch(const Config& config)
    : config_(config),
      pid_(static_cast<std::uint32_t>(getpid())),
      host_(host_name()),
      nic_(config.nic) {}

Result<std::unique_ptr<PeerWatch>> PeerWatch::open(const Config& config) {
  std::unique_ptr<PeerWatch> out(new PeerWatch(config));
  ZTCP_CHECK(out->listen());
  return out;
}

Status PeerWatch::listen() {
  epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return fail_errno("epoll_create1");
  listener_ = Fd(new_socket(config_.bind_address));
  if (!listener_) return fail_errno("socket");
  SocketAddress address = to_socket_address({config_.bind_address, 0});
  if (bind(listener_.get(), address.get(), address.size_bytes) != 0) return fail_errno("bind");
  if (::listen(listener_.get(), SOMAXCONN) != 0) return fail_errno("listen");
  if (getsockname(listener_.get(), address.get(), &address.size_bytes) != 0)
    return fail_errno("getsockname");
  endpoint_ = to_endpoint(address);
  if (!watch(listener_.get(), kListener, EPOLLIN)) return fail_errno("epoll_ctl");
  return {};
}

bool PeerWatch::watch(int fd, std::uint64_t id, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0 ||
         (errno == EEXIST && epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0);
}

void PeerWatch::set_nic(IpAddress nic) {
  const std::lock_guard lock(mutex_);
  nic_ = nic;
}

void PeerWatch::expect(const Proof& proof) {
  const std::lock_guard lock(mutex_);
  if (proofs_.size() == kMaxProofs) proofs_.pop_front();
  proofs_.push_back(proof);
}

void PeerWatch::dial(IpAddress nic, Endpoint to, const Proof& proof) {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, other] : conversations_) {
    const bool is_under_way = other.is_dialled && other.to == to;
    const bool is_there =
        other.state == State::kUp && other.peer.nic == nic && !other.peer.shares_nic;
    if (is_under_way || is_there) return;
  }
  if (conversations_.size() >= config_.max_peers) {
    ++counters_.full;
    return;
  }
  Conversation c;
  c.state = State::kConnecting;
  c.is_dialled = true;
  c.to = to;
  c.proof = proof;
  c.peer.nic = nic;
  c.fd = Fd(new_socket(to.address));
  if (!c.fd) return note_trouble(c, errno);
  const SocketAddress address = to_socket_address(to);
  const int rc = connect(c.fd.get(), address.get(), address.size_bytes);
  if (rc != 0 && errno != EINPROGRESS) return note_trouble(c, errno);
  const std::uint64_t id = ++last_id_;
  if (!watch(c.fd.get(), id, EPOLLOUT)) return note_trouble(c, errno);
  conversations_.emplace(id, std::move(c));
  ++greeting_;
}

std::vector<Peer> PeerWatch::poll(TimePoint now) {
  std::vector<Peer> gone;
  const std::lock_guard lock(mutex_);
  std::array<epoll_event, kEventsPerPoll> events;
  const int count = epoll_wait(epoll_.get(), events.data(), kEventsPerPoll, 0);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
    if (id == kListener) {
      accept_some();
      continue;
    }
    const auto at = conversations_.find(id);
    if (at == conversations_.end()) continue;  // Dropped earlier in this call.
    switch (at->second.state) {
      case State::kConnecting:
        finish_dial(at, gone);
        break;
      case State::kGreeting:
        greet(at, gone);
        break;
      case State::kUp:
        listen_to(at, gone);
        break;
    }
  }
  if (greeting_ != 0) expire(now);
  return gone;
}

void PeerWatch::accept_some() {
  for (int i = 0; i < kCallersPerPoll; ++i) {
    Conversation c;
    c.fd = Fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!c.fd) return;
    drop_oldest_stranger();
    if (conversations_.size() >= config_.max_peers) {
      ++counters_.full;
      continue;
    }
    const std::uint64_t id = ++last_id_;
    if (!watch(c.fd.get(), id, EPOLLIN)) continue;
    conversations_.emplace(id, std::move(c));
    ++greeting_;
  }
}

// Among callers that have not sent their hello the oldest is the least likely to be a peer.
void PeerWatch::drop_oldest_stranger() {
  std::size_t strangers = 0;
  auto oldest = conversations_.end();
  for (auto it = conversations_.begin(); it != conversations_.end(); ++it) {
    if (it->second.is_dialled || it->second.state == State::kUp) continue;
    ++strangers;
    if (oldest == conversations_.end() || it->first < oldest->first) oldest = it;
  }
  if (strangers < kMaxStrangers) return;
  ++counters_.strangers;
  --greeting_;
  conversations_.erase(oldest);
}

void PeerWatch::finish_dial(Table::iterator at, std::vector<Peer>& gone) {
  Conversation& c = at->second;
  int error = 0;
  socklen_t size = sizeof(error);
  if (getsockopt(c.fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error == 0 && say_hello(c) && watch(c.fd.get(), at->first, EPOLLIN)) {
    c.state = State::kGreeting;
    return;
  }
  give_up(at, error != 0 ? error : errno, gone);
}

// The kernel of a dialled peer has ended the connection before the hello: the process has died
// early, or refuses the watch. Its NIC shows the difference.
void PeerWatch::give_up(Table::iterator at, int error, std::vector<Peer>& gone) {
  Conversation& c = at->second;
  note_trouble(c, error);
  if (is_word_of_peer(error)) gone.push_back(std::move(c.peer));
  --greeting_;
  conversations_.erase(at);
}

void PeerWatch::greet(Table::iterator at, std::vector<Peer>& gone) {
  Conversation& c = at->second;
  const ssize_t got =
      recv(c.fd.get(), c.heard.data() + c.heard_bytes, kHelloBytes - c.heard_bytes, 0);
  const int error = got < 0 ? errno : got == 0 ? ECONNRESET : ECONNREFUSED;
  if (got < 0 && is_later(error)) return;
  if (got > 0) {
    c.heard_bytes += static_cast<std::size_t>(got);
    if (c.heard_bytes < kHelloBytes) return;
    if (take_hello(c) && (c.is_dialled || say_hello(c))) {
      c.state = State::kUp;
      c.deadline = kNever;
      --greeting_;
      return;
    }
  }
  if (c.is_dialled) return give_up(at, error, gone);
  ++counters_.strangers;
  --greeting_;
  conversations_.erase(at);
}

// Peers send nothing after the hello, so a readable connection has ended.
void PeerWatch::listen_to(Table::iterator at, std::vector<Peer>& gone) {
  std::byte ignored{};
  const ssize_t got = recv(at->second.fd.get(), &ignored, sizeof(ignored), 0);
  if (got < 0 && is_later(errno)) return;
  const bool has_ended = got == 0 || (got < 0 && is_word_of_peer(errno));
  const Peer peer = std::move(at->second.peer);
  conversations_.erase(at);
  if (!has_ended) {
    ++counters_.broken;
    return;
  }
  const bool has_other =
      std::any_of(conversations_.begin(), conversations_.end(), [&](const auto& other) {
        return other.second.state == State::kUp && is_same(other.second.peer, peer);
      });
  if (!has_other && !peer.shares_nic) gone.push_back(peer);
}

bool PeerWatch::take_hello(Conversation& c) {
  Hello hello;
  std::memcpy(&hello, c.heard.data(), sizeof(hello));
  if (hello.magic != kMagic || hello.version != kVersion) return false;
  const IpAddress nic(be64toh(hello.nic[0]), be64toh(hello.nic[1]));
  if (c.is_dialled) {
    if (hello.proof != c.proof || nic != c.peer.nic) return false;
  } else if (std::find(proofs_.begin(), proofs_.end(), hello.proof) == proofs_.end()) {
    return false;
  }
  c.proof = hello.proof;
  c.peer = {.nic = nic,
            .pid = hello.pid,
            .host = printable(hello.host.data(), hello.host.size()),
            .shares_nic = (hello.flags & kSharesNic) != 0};
  return true;
}

bool PeerWatch::say_hello(const Conversation& c) {
  static_assert(sizeof(Hello) == kHelloBytes);
  Hello hello;
  hello.pid = pid_;
  hello.flags = config_.shares_nic ? kSharesNic : 0;
  hello.nic = {htobe64(nic_.high), htobe64(nic_.low)};
  hello.proof = c.proof;
  std::copy_n(host_.begin(), std::min(host_.size(), kHostBytes), hello.host.begin());
  // A message this short fits into a new socket's buffer as a whole.
  return send(c.fd.get(), &hello, sizeof(hello), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(sizeof(hello));
}

void PeerWatch::note_trouble(const Conversation& c, int error) {
  ++counters_.unreachable;
  if (std::exchange(had_trouble_, true)) return;
  trouble_ = to_string(c.to) + ": " + std::strerror(error);
}

std::string PeerWatch::take_trouble() {
  const std::lock_guard lock(mutex_);
  return std::exchange(trouble_, {});
}

void PeerWatch::expire(TimePoint now) {
  for (auto it = conversations_.begin(); it != conversations_.end();) {
    Conversation& c = it->second;
    if (c.state != State::kUp && c.deadline == kNever) c.deadline = now + config_.greeting_timeout;
    if (c.state == State::kUp || now < c.deadline) {
      ++it;
      continue;
    }
    if (c.is_dialled)
      note_trouble(c, ETIMEDOUT);
    else
      ++counters_.strangers;
    --greeting_;
    it = conversations_.erase(it);
  }
}

std::size_t PeerWatch::peers() const {
  const std::lock_guard lock(mutex_);
  return conversations_.size() - greeting_;
}

}  // namespace ztcp::watch
