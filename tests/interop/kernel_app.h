// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The user of one kernel TCP socket: the counterpart of sim::App on the other side of the tap.
// Sends a block, compares the received bytes with the expected block, and never blocks: pump() does
// all that is possible now.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "core/address.h"
#include "core/fd.h"

namespace ztcp::interop {

// The part of TCP_INFO that tests compare.
struct KernelTcpInfo {
  bool timestamps = false;
  bool sack = false;
  bool window_scaling = false;
  bool ecn = false;
  std::uint8_t peer_window_scale = 0;
  std::uint32_t send_mss_bytes = 0;
  std::uint32_t receive_mss_bytes = 0;
  std::uint32_t rtt_us = 0;
  std::uint32_t total_retransmits = 0;
  std::uint32_t dsacks_received = 0;
  std::uint32_t probes_unanswered = 0;
};

class KernelApp {
 public:
  // Both blocks outlive the app. It sends as soon as it is connected.
  KernelApp(std::span<const std::byte> to_send, std::span<const std::byte> to_receive)
      : to_send_(to_send), to_receive_(to_receive) {}

  // --- Before the connection exists
  void set_congestion_control(const char* name) { congestion_control_ = name; }
  void set_receive_buffer(int bytes) { receive_buffer_bytes_ = bytes; }
  void set_local_port(std::uint16_t port) { local_port_ = port; }
  void set_protocol(int protocol) { protocol_ = protocol; }
  void set_fast_open() { fast_open_ = true; }
  // Empty, or the reason of the failure.
  [[nodiscard]] std::string listen(Endpoint local);
  [[nodiscard]] std::string connect(Endpoint remote);

  // --- While the connection exists
  void set_reading(bool reading) { reading_ = reading; }
  // At most this many bytes per recv() or send(), and that many calls per pump().
  void set_steps(std::size_t bytes, int per_pump) {
    step_bytes_ = bytes;
    steps_per_pump_ = per_pump;
  }
  void set_option(int level, int name, int value);
  void pump();
  // The last byte of to_send leaves as urgent data.
  void end_urgently() { end_urgently_ = true; }
  void shutdown_write();
  void close() { socket_ = {}; }
  // SO_LINGER 0: RST.
  void reset();

  bool is_connected() const { return connected_; }
  bool is_open() const { return static_cast<bool>(socket_) && connected_; }
  std::size_t received() const { return received_; }
  std::size_t sent() const { return sent_; }
  bool has_received_all() const { return received_ == to_receive_.size(); }
  bool has_sent_all() const { return sent_ == to_send_.size(); }
  bool is_peer_closed() const { return peer_closed_; }
  int error() const { return error_; }
  const std::string& violation() const { return violation_; }
  KernelTcpInfo info() const;
  std::string congestion_control() const;

 private:
  std::string prepare(Fd& socket, IpAddress address);
  void check_connecting();
  void receive();
  void send();
  void fail(int error);

  std::span<const std::byte> to_send_;
  std::span<const std::byte> to_receive_;
  const char* congestion_control_ = nullptr;
  int receive_buffer_bytes_ = 0;
  int protocol_ = 0;
  std::uint16_t local_port_ = 0;
  bool fast_open_ = false;
  Fd listener_;
  Fd socket_;
  bool connected_ = false;
  bool reading_ = true;
  bool end_urgently_ = false;
  bool peer_closed_ = false;
  std::size_t step_bytes_ = 256U << 10;
  int steps_per_pump_ = 4;
  std::size_t sent_ = 0;
  std::size_t received_ = 0;
  int error_ = 0;
  std::string violation_;
};

}  // namespace ztcp::interop
