// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Joins queue pairs that two ends can't join by what they tell each other: iWARP's, which go over a
// TCP connection each that the devices themselves make, at librdmacm's word (RFC 5040, RFC 5044).
//
// The receiver of messages initiates, since it is the one that writes first: who has initiated must
// be the first to send (RFC 5044 section 7.1.2), and slots go before messages do. It says whose
// connection it is for by the nonce of the sender's hello, which nobody else knows.
//
// The kernel may take its time in any of the calls: soft iWARP waits for TCP's handshake where a
// connection is begun, and for that where its queue pair is destroyed. So they are made by a thread
// of their own, which also destroys what is joined; nobody waits for it.
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

#include "transport/core/address.h"
#include "transport/core/result.h"
#include "transport/link/fd.h"
#include "transport/verbs/cm_api.h"
#include "transport/verbs/parts.h"

namespace ztcp::verbs {

struct CmConnectionPlan {
  bool initiates = false;
  std::array<std::byte, 16> nonce{};
  std::vector<std::uint32_t> numbers;  // Of queue pairs; the peer has as many.
  // Of who initiates.
  std::string hca;
  IpAddress from;
  std::uint32_t scope = 0;  // The interface's index for link-local addresses.
  Endpoint to;
};

// Between the queue pairs of one connection and the peer's.
class CmConnection {
 public:
  enum class State : std::uint8_t { kJoining, kJoined, kFailed };

  explicit CmConnection(CmConnectionPlan plan)
      : plan_(std::move(plan)), ids_(plan_.numbers.size()) {}

  State state() const { return state_.load(std::memory_order_acquire); }
  const std::string& why() const { return why_; }  // Of one that failed.

 private:
  friend class ConnectionManager;

  const CmConnectionPlan plan_;
  std::vector<CmId*> ids_;  // By queue pair. The thread's, as what follows.
  std::size_t established_ = 0;
  std::string why_;
  std::atomic<State> state_{State::kJoining};
  // Under the manager's lock.
  bool is_begun_ = false;
  bool is_left_ = false;
  QueuePairParts parts_;
};

class ConnectionManager : public std::enable_shared_from_this<ConnectionManager> {
 public:
  // Whoever has to hear that a connection is joined or has failed is woken by `wake`, an eventfd.
  static Result<std::shared_ptr<ConnectionManager>> start(const CmApi& api, link::Fd wake);
  ConnectionManager(const ConnectionManager&) = delete;
  ConnectionManager& operator=(const ConnectionManager&) = delete;
  ~ConnectionManager();

  // The port at the device's address where peers find it; bound at the first call.
  Result<std::uint16_t> listen(const Device& device);
  std::shared_ptr<CmConnection> join(CmConnectionPlan plan);
  // Nobody asks for the connection any more, and what it joined goes.
  void leave(const std::shared_ptr<CmConnection>& connection, QueuePairParts parts);
  // It ends once all connections are left; waits for that, but not for a kernel that does not
  // answer.
  void stop();

 private:
  ConnectionManager(const CmApi& api, CmChannel& channel, link::Fd wake, link::Fd own)
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
  CmChannel* channel_;  // Null: it has ended.
  const link::Fd wake_;
  const link::Fd own_wake_;

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
