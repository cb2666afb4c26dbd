// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A small HTTP/1.1 server for one resource, GET /metrics: one thread, no keep-alive. Each client
// has a small buffer and a deadline, so that slow clients neither hold memory nor delay others.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/address.h"
#include "core/descriptor.h"
#include "core/result.h"

namespace ztcp::stat {

class HttpServer {
 public:
  static constexpr std::size_t kMostClients = 32;  // The oldest makes room for a new one.
  static constexpr std::size_t kMostRequestBytes = 8192;
  static constexpr std::chrono::seconds kClientTimeout{5};

  // Listens at `at`; port 0: one that the kernel chooses. `metrics` makes the text for a request.
  static Result<HttpServer> open(Endpoint at, std::function<std::string()> metrics);

  Endpoint endpoint() const { return endpoint_; }
  // Serves clients until `wait` is over or a signal arrives.
  Status serve(std::chrono::milliseconds wait);

 private:
  using Clock = std::chrono::steady_clock;
  struct Client {
    Descriptor fd;
    Clock::time_point deadline;
    std::string request;
    std::string response;  // Empty: the request is not complete.
    std::size_t sent = 0;
  };

  HttpServer(Descriptor listener, Endpoint endpoint, std::function<std::string()> metrics)
      : listener_(std::move(listener)), endpoint_(endpoint), metrics_(std::move(metrics)) {}
  void accept_clients();
  bool advance(Client& client);  // False: the client is done.
  std::string answer(const std::string& request) const;

  Descriptor listener_;
  Endpoint endpoint_;
  std::function<std::string()> metrics_;
  std::vector<Client> clients_;  // The oldest first.
};

}  // namespace ztcp::stat
