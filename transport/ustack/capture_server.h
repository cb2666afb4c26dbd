// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Lets a program of the same user, or of root, capture the frames of this process's NICs: a unix
// socket "capture-PID.sock" in the run directory, and a thread that sleeps until the socket is used
// (stats/capture_wire.h has its messages). The lanes share no lock with it.
//
// A killed process leaves its socket file behind: a process that gets the same pid replaces it, and
// the capturing program removes it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/address.h"
#include "core/clock.h"
#include "core/fd.h"
#include "core/result.h"
#include "transport/link/link.h"
#include "transport/stats/capture_wire.h"
#include "transport/ustack/capture_session.h"

namespace ztcp::ustack {

class CaptureServer {
 public:
  // A request that has not come after this time ends its connection.
  static constexpr Duration kRequestTimeout = std::chrono::seconds(2);

  // The socket exists when this returns. `run_dir` exists already.
  static Result<std::unique_ptr<CaptureServer>> start(const std::string& run_dir);
  ~CaptureServer();
  CaptureServer(const CaptureServer&) = delete;
  CaptureServer& operator=(const CaptureServer&) = delete;

  // --- Any thread --------------------------------------------------------------------------------
  // A NIC with a tap for each lane. Replaces one of that name, which did not come up: no router
  // advertised itself, for example.
  void add(const std::string& device, const MacAddress& mac, std::uint16_t mtu_bytes,
           CaptureTaps taps);
  const std::string& path() const { return path_; }
  // At the end of the process: takes no lock and allocates nothing.
  void remove_file();

 private:
  // Two captures, and two programs that only ask.
  static constexpr std::size_t kMostClients = stats::kMostCaptures + 2;

  struct Device {
    std::string name;
    MacAddress mac;
    std::uint16_t mtu_bytes;
    CaptureTaps taps;
  };
  struct Client {
    Fd socket;
    TimePoint request_deadline{};
    std::unique_ptr<CaptureSession> session;  // Null: its request has not come.
  };

  CaptureServer(std::string path, Fd listener, Fd wake)
      : path_(std::move(path)), listener_(std::move(listener)), wake_(std::move(wake)) {}
  void serve();
  void accept_clients(TimePoint now);
  // False: the connection is over.
  bool on_readable(Client& client);
  stats::CaptureAnswer answer_to(const stats::CaptureRequest& request, Client& client);
  stats::CaptureAnswer list();

  const std::string path_;
  const Fd listener_;
  const Fd wake_;
  std::atomic<bool> has_file_{true};
  std::atomic<bool> ends_{false};
  std::mutex mutex_;
  std::vector<Device> devices_;
  std::vector<Client> clients_;  // The thread's.
  TimePoint next_accept_{};      // After an accept() without descriptors or memory.
  std::thread thread_;
};

// The captures that a process offers of its NICs' frames: a CaptureServer from its first NIC on. A
// process where none can be started runs on without, and says so.
class CaptureOffer {
 public:
  CaptureOffer() = default;
  // In a forked child, which has no thread of the server's, the server is leaked.
  ~CaptureOffer();
  CaptureOffer(const CaptureOffer&) = delete;
  CaptureOffer& operator=(const CaptureOffer&) = delete;

  // One thread at a time. An empty `run_dir` offers none.
  void add(const std::string& run_dir, const std::string& nic, const link::LinkCapabilities& link,
           CaptureTaps taps);
  // Any thread, at the end of the process: takes no lock and allocates nothing.
  void end();

 private:
  std::unique_ptr<CaptureServer> server_;
  std::atomic<CaptureServer*> at_end_{nullptr};  // The same, for end().
};

}  // namespace ztcp::ustack
