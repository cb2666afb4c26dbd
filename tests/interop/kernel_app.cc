// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/interop/kernel_app.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <vector>

#include "core/socket_address.h"

namespace ztcp::interop {
namespace {

std::string reason(const char* what) { return std::string(what) + ": " + std::strerror(errno); }

}  // namespace

std::string KernelApp::prepare(Fd& socket, IpAddress address) {
  socket = Fd(::socket(address.is_v4() ? AF_INET : AF_INET6,
                       SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol_));
  if (!socket) return reason("socket");
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  setsockopt(socket.get(), SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (receive_buffer_bytes_ != 0)
    setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes_,
               sizeof(receive_buffer_bytes_));
  if (congestion_control_ != nullptr &&
      setsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, congestion_control_,
                 static_cast<socklen_t>(std::strlen(congestion_control_))) != 0)
    return reason(congestion_control_);
  return {};
}

std::string KernelApp::listen(Endpoint local) {
  if (std::string why = prepare(listener_, local.address); !why.empty()) return why;
  const SocketAddress address = to_socket_address(local);
  if (bind(listener_.get(), address.get(), address.size_bytes) != 0) return reason("bind");
  if (::listen(listener_.get(), 8) != 0) return reason("listen");
  return {};
}

std::string KernelApp::connect(Endpoint remote) {
  if (std::string why = prepare(socket_, remote.address); !why.empty()) return why;
  const int on = 1;
  if (fast_open_ &&
      setsockopt(socket_.get(), IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof(on)) != 0)
    return reason("TCP_FASTOPEN_CONNECT");
  const IpAddress any = remote.address.is_v4() ? IpAddress(Ipv4Address{}) : IpAddress();
  const SocketAddress local = to_socket_address({any, local_port_});
  if (bind(socket_.get(), local.get(), local.size_bytes) != 0) return reason("bind");
  const SocketAddress address = to_socket_address(remote);
  if (::connect(socket_.get(), address.get(), address.size_bytes) != 0 && errno != EINPROGRESS)
    return reason("connect");
  return {};
}

void KernelApp::set_option(int level, int name, int value) {
  if (setsockopt(socket_.get(), level, name, &value, sizeof(value)) != 0)
    violation_ = reason("setsockopt");
}

void KernelApp::check_connecting() {
  pollfd ready{socket_.get(), POLLOUT, 0};
  if (poll(&ready, 1, 0) != 1) return;
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0)
    fail(error);
  else
    connected_ = true;
}

void KernelApp::pump() {
  if (!socket_ && listener_ && !connected_) {
    socket_ = Fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket_) return;
    listener_ = {};
    connected_ = true;
  }
  if (socket_ && !connected_ && error_ == 0) check_connecting();
  if (!is_open() || error_ != 0) return;
  if (reading_) receive();
  if (error_ == 0) send();
}

void KernelApp::receive() {
  std::vector<std::byte> buffer(step_bytes_);
  for (int i = 0; i < steps_per_pump_ && !peer_closed_; ++i) {
    const ssize_t size = recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (size < 0) {
      if (errno != EAGAIN) fail(errno);
      return;
    }
    if (size == 0) {
      peer_closed_ = true;
      return;
    }
    const auto bytes = static_cast<std::size_t>(size);
    if (bytes > to_receive_.size() - received_) {
      violation_ = "the kernel got more bytes than were sent";
      return;
    }
    if (std::memcmp(buffer.data(), to_receive_.data() + received_, bytes) != 0)
      violation_ = "the kernel got wrong bytes behind offset " + std::to_string(received_);
    received_ += bytes;
  }
}

void KernelApp::send() {
  for (int i = 0; i < steps_per_pump_ && !has_sent_all(); ++i) {
    std::size_t want = std::min(step_bytes_, to_send_.size() - sent_);
    int flags = MSG_NOSIGNAL;
    if (end_urgently_ && want > 1 && sent_ + want == to_send_.size()) --want;
    if (end_urgently_ && sent_ + 1 == to_send_.size()) flags |= MSG_OOB;
    const ssize_t size = ::send(socket_.get(), to_send_.data() + sent_, want, flags);
    if (size < 0) {
      if (errno != EAGAIN) fail(errno);
      return;
    }
    sent_ += static_cast<std::size_t>(size);
  }
}

void KernelApp::fail(int error) { error_ = error; }

void KernelApp::shutdown_write() {
  if (::shutdown(socket_.get(), SHUT_WR) != 0) violation_ = reason("shutdown");
}

void KernelApp::reset() {
  const linger now{.l_onoff = 1, .l_linger = 0};
  setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  close();
}

KernelTcpInfo KernelApp::info() const {
  tcp_info raw{};
  socklen_t size = sizeof(raw);
  getsockopt(socket_.get(), IPPROTO_TCP, TCP_INFO, &raw, &size);
  KernelTcpInfo info;
  info.timestamps = (raw.tcpi_options & TCPI_OPT_TIMESTAMPS) != 0;
  info.sack = (raw.tcpi_options & TCPI_OPT_SACK) != 0;
  info.window_scaling = (raw.tcpi_options & TCPI_OPT_WSCALE) != 0;
  info.ecn = (raw.tcpi_options & TCPI_OPT_ECN) != 0;
  info.peer_window_scale = raw.tcpi_snd_wscale;
  info.send_mss_bytes = raw.tcpi_snd_mss;
  info.receive_mss_bytes = raw.tcpi_rcv_mss;
  info.rtt_us = raw.tcpi_rtt;
  info.total_retransmits = raw.tcpi_total_retrans;
  info.dsacks_received = raw.tcpi_dsack_dups;
  info.probes_unanswered = raw.tcpi_probes;
  return info;
}

std::string KernelApp::congestion_control() const {
  std::array<char, 16> name{};
  socklen_t size = name.size();
  getsockopt(socket_.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(), &size);
  return name.data();
}

}  // namespace ztcp::interop
