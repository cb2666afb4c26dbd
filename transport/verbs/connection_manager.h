// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Joins queue pairs of iWARP. Exchanging their facts does not suffice: each runs over a TCP
// connection of its own, which the devices establish under the control of librdmacm (RFC 5040, RFC
// 5044).
//
// The receiver of messages initiates: the initiator must be the first to send (RFC 5044 section
// 7.1.2), and slots precede messages. Its request names the connection by the nonce of the sender's
// hello, which nobody else knows.
//
// Any of the calls may block in the kernel: soft iWARP waits for TCP's handshake when a connection
// is begun, and again when its queue pair is destroyed. Therefore a thread of its own makes these
// calls, and also destroys joined queue pairs; no other thread waits for it.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/address.h"
#include "core/fd.h"
#include "core/result.h"
#include "transport/verbs/cm_api.h"
#include "transport/verbs/parts.h"

namespace ztcp::verbs {

struct CmConnectionPlan {
  bool initiates = false;
  std::array<std::byte, 16> nonce{};
  std::vector<std::uint32_t> numbers;  // Numbers of our queue pairs; the peer has as many.
  // For the initiator.
  std::string hca;
  IpAddress from;
  std::uint32_t scope = 0;  // The interface's index for link-local addresses.
  Endpoint to;
};

// Connects the queue pairs of one connection with the peer's.
class CmConnection {
 public:
  enum class State : std::uint8_t { kJoining, kJoined, kFailed };

  explicit CmConnection(CmConnectionPlan plan)
      : plan_(std::move(plan)), ids_(plan_.numbers.size()) {}

  State state() const { return state_.load(std::memory_order_acquire); }
  const std::string& why() const { return why_; }  // In state kFailed.

 private:
  friend class ConnectionManager;

  const CmConnectionPlan plan_;
  // Used by the manager's thread alone.
  std::vector<CmId*> ids_;  // By queue pair.
  std::size_t established_ = 0;
  // Written by that thread. Other threads read why_ once state_ is kFailed.
  std::string why_;
  std::atomic<State> state_{State::kJoining};
  // Under the manager's lock.
  bool is_begun_ = false;
  bool is_left_ = false;
  QueuePairParts parts_;
};

class ConnectionManager : public std::enable_shared_from_this<ConnectionManager> {
 public:
  // `wake`: an eventfd, written when a connection is joined or has failed.
  static Result<std::shared_ptr<ConnectionManager>> start(const CmApi& api, Fd wake);
  ConnectionManager(const ConnectionManager&) = delete;
  ConnectionManager& operator=(const ConnectionManager&) = delete;
  ~ConnectionManager();

  // The port on which it listens at the device's address; bound at the first call.
  Result<std::uint16_t> listen(const Device& device);
  std::shared_ptr<CmConnection> join(CmConnectionPlan plan);
  // The connection is no longer needed: its queue pairs are destroyed.
  void leave(const std::shared_ptr<CmConnection>& connection, QueuePairParts parts);
  // Ends the thread once all connections are left. Waits for that, but not for a kernel that does
  // not answer.
  void stop();

 private:
  ConnectionManager(const CmApi& api, CmChannel& channel, Fd wake, Fd own)
      : api_(api), channel_(&channel), wake_(std::move(wake)), own_wake_(std::move(own)) {}
  Result<CmId*> bind(const Device& device, std::uint16_t port);

  void run();
  bool take_changes();
  bool take_event();
  void begin(CmConnection& connection);
  void end(CmConnection& connection);
  void on_request(CmId& id, const CmEvent& event);
  void on_event(CmId& id, const CmEvent& event);
  void on_removal(const CmId& id);
  void connect(CmConnection& connection, CmId& id);
  void fail(CmConnection& connection, const std::string& why);
  void tell() const;
  void close_all();

  const CmApi& api_;
  CmChannel* channel_;  // Null: the thread has ended.
  const Fd wake_;
  const Fd own_wake_;

  std::mutex mutex_;
  std::map<std::pair<std::string, IpAddress>, CmId*> listeners_;  // By device and address.
  std::vector<std::shared_ptr<CmConnection>> connections_;
  bool stopping_ = false;
  bool has_ended_ = false;
  std::condition_variable ended_;
};

// Why the device can't be used with the manager at its address; empty: it can.
std::string fault_of_manager(const CmApi& api, const Device& device);

}  // namespace ztcp::verbs
