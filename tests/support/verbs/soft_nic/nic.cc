// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/support/verbs/soft_nic/nic.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

namespace ztcp::soft_nic {
namespace {

sockaddr_un address_of(const std::string& folder, std::uint32_t node) {
  sockaddr_un out{};
  out.sun_family = AF_UNIX;
  const std::string path = fmt::format("{}/nic.{}", folder, node);
  path.copy(std::begin(out.sun_path), sizeof out.sun_path - 1);
  return out;
}

int unix_socket() { return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

}  // namespace

Nic& Nic::get() {
  static Nic& one = *new Nic;
  return one;
}

Nic::Nic()
    : settings_(read_settings()),
      memory_(settings_.faults, counters_),
      random_(settings_.faults.seed) {}

bool Nic::start() {
  if (is_started_) return true;
  listener_ = unix_socket();
  for (node_ = 0; node_ < 1U << kNodeBits; ++node_) {
    const sockaddr_un name = address_of(settings_.folder, node_);
    if (bind(listener_, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0) break;
    if (errno != EADDRINUSE) return false;
  }
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  doorbell_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (node_ == 1U << kNodeBits || listen(listener_, SOMAXCONN) != 0 || epoll_ < 0 || doorbell_ < 0)
    return false;
  for (const int fd : {listener_, doorbell_}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) return false;
  }
  // Signals are for the program's own threads.
  sigset_t all{};
  sigset_t before{};
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([this] { run(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return is_started_ = true;
}

void Nic::run() {
  pthread_setname_np(pthread_self(), "soft-nic");
  constexpr int kMostEvents = 64;
  std::array<epoll_event, kMostEvents> events{};
  while (true) {
    int wait_ms = -1;
    {
      const std::lock_guard lock(mutex_);
      send_all(Clock::now());
      if (const TimePoint until = next_deadline(); until != TimePoint::max()) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
        wait_ms = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1000));
      }
    }
    const int count = epoll_wait(epoll_, events.data(), kMostEvents, wait_ms);
    const std::lock_guard lock(mutex_);
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      if (event.data.fd == doorbell_) {
        eventfd_t rings = 0;
        eventfd_read(doorbell_, &rings);
      } else if (event.data.fd == listener_) {
        accept_all();
      } else if (const auto found = streams_.find(event.data.fd); found != streams_.end()) {
        Stream& stream = *found->second;
        if ((event.events & EPOLLOUT) != 0) write_out(stream);
        if ((event.events & ~static_cast<unsigned>(EPOLLOUT)) != 0 &&
            streams_.contains(event.data.fd))
          on_readable(stream);
      }
    }
  }
}

void Nic::ring() const { eventfd_write(doorbell_, 1); }

void Nic::add(QueuePair& qp) {
  do {
    next_number_ = (next_number_ + 1) % (1U << kNumberBits);
    qp.qp_num = node_ << kNumberBits | next_number_;
  } while (next_number_ == 0 || queue_pairs_.contains(qp.qp_num));
  queue_pairs_[qp.qp_num] = &qp;
}

QueuePair* Nic::find(std::uint32_t number) const {
  const auto found = queue_pairs_.find(number);
  return found == queue_pairs_.end() ? nullptr : found->second;
}

bool Nic::has_any_of(const ibv_pd* domain) const {
  return memory_.has_any_of(domain) ||
         std::any_of(queue_pairs_.begin(), queue_pairs_.end(),
                     [&](const auto& one) { return one.second->pd == domain; });
}

void Nic::watch(Stream& stream, bool also_for_room) const {
  stream.waits_for_room = also_for_room;
  epoll_event event{};
  event.events = EPOLLIN;
  if (also_for_room) event.events |= EPOLLOUT;
  event.data.fd = stream.fd();
  if (epoll_ctl(epoll_, EPOLL_CTL_MOD, stream.fd(), &event) != 0)
    epoll_ctl(epoll_, EPOLL_CTL_ADD, stream.fd(), &event);
}

// nullptr: that process has ended.
Stream* Nic::stream_to(std::uint32_t node) {
  if (const auto found = outgoing_.find(node); found != outgoing_.end()) return found->second;
  const int fd = unix_socket();
  const sockaddr_un name = address_of(settings_.folder, node);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) {
    close(fd);
    return nullptr;
  }
  auto& stream = streams_[fd] = std::make_unique<Stream>(fd);
  watch(*stream, false);
  return outgoing_[node] = stream.get();
}

void Nic::accept_all() {
  while (true) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    auto& stream = streams_[fd] = std::make_unique<Stream>(fd);
    watch(*stream, false);
  }
}

void Nic::on_readable(Stream& stream) {
  const bool is_there = stream.read([&](const Packet& packet, std::span<const std::byte> payload) {
    const bool is_request = packet.kind == PacketKind::kWrite || packet.kind == PacketKind::kSend ||
                            packet.kind == PacketKind::kRead;
    if (is_request)
      on_request(stream, packet, payload);
    else
      on_answer(packet, payload);
  });
  if (!is_there) return forget(stream);
  write_out(stream);
}

void Nic::write_out(Stream& stream) {
  if (!stream.write()) return forget(stream);
  if (stream.has_unwritten() != stream.waits_for_room) watch(stream, stream.has_unwritten());
}

void Nic::forget(const Stream& stream) {
  std::erase_if(outgoing_, [&](const auto& one) { return one.second == &stream; });
  streams_.erase(stream.fd());
}

void Nic::complete(ibv_cq* cq, const ibv_wc& completion, std::uint32_t sends) {
  auto& queue = static_cast<CompletionQueue&>(*cq);
  if (queue.waiting.size() == static_cast<std::size_t>(queue.cqe))
    counters_.note_misuse("a completion queue overran");
  queue.waiting.push_back({completion, sends});
  queue.count.store(queue.waiting.size(), std::memory_order_release);
}

}  // namespace ztcp::soft_nic
