// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/export/http_server.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <string_view>
#include <sys/socket.h>

#include <fmt/format.h>

#include "core/socket_address.h"

namespace ztcp::stat {
namespace {

std::string response(std::string_view status, std::string_view type, std::string_view body,
                     bool has_body, std::string_view more = "") {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n{}\r\n{}",
      status, type, body.size(), more, has_body ? body : "");
}

std::string refusal(std::string_view status, std::string_view more = "") {
  return response(status, "text/plain; charset=utf-8", fmt::format("{}\n", status), true, more);
}

}  // namespace

Result<HttpServer> HttpServer::open(Endpoint at, std::function<std::string()> metrics) {
  SocketAddress address = to_socket_address(at);
  Descriptor listener(
      ::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!listener) return fail_errno("socket");
  const int on = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(listener.get(), address.get(), address.size_bytes) != 0) return fail_errno("bind");
  if (::listen(listener.get(), 16) != 0) return fail_errno("listen");
  SocketAddress bound;
  if (::getsockname(listener.get(), bound.get(), &bound.size_bytes) != 0)
    return fail_errno("getsockname");
  return HttpServer(std::move(listener), to_endpoint(bound), std::move(metrics));
}

Status HttpServer::serve(std::chrono::milliseconds wait) {
  const Clock::time_point end = Clock::now() + wait;
  for (;;) {
    const Clock::time_point now = Clock::now();
    std::erase_if(clients_, [&](const Client& client) { return client.deadline <= now; });
    if (now >= end) return {};
    Clock::time_point next = end;
    std::vector<pollfd> polled = {{listener_.get(), POLLIN, 0}};
    for (const Client& client : clients_) {
      const short events = client.response.empty() ? POLLIN : POLLOUT;
      polled.push_back({client.fd.get(), events, 0});
      next = std::min(next, client.deadline);
    }
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(next - now).count();
    const int ready = ::poll(polled.data(), polled.size(), static_cast<int>(ms));
    if (ready < 0 && errno == EINTR) return {};
    if (ready < 0) return fail_errno("poll");
    // Backwards, since clients that are done are removed; new ones come behind them.
    for (std::size_t i = clients_.size(); i-- > 0;) {
      if (polled[i + 1].revents != 0 && !advance(clients_[i]))
        clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (polled[0].revents != 0) accept_clients();
  }
}

void HttpServer::accept_clients() {
  for (;;) {
    Descriptor fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd && !clients_.empty() && (errno == EMFILE || errno == ENFILE)) {
      clients_.erase(clients_.begin());
      return;
    }
    if (!fd) return;
    if (clients_.size() == kMostClients) clients_.erase(clients_.begin());
    clients_.push_back({std::move(fd), Clock::now() + kClientTimeout, {}, {}, 0});
  }
}

bool HttpServer::advance(Client& client) {
  if (client.response.empty()) {
    char buffer[2048];
    const ssize_t got = ::recv(client.fd.get(), buffer, sizeof buffer, 0);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    client.request.append(buffer, static_cast<std::size_t>(got));
    if (client.request.size() > kMostRequestBytes)
      client.response = refusal("431 Request Header Fields Too Large");
    else if (client.request.find("\r\n\r\n") != std::string::npos)
      client.response = answer(client.request);
    else
      return true;
  }
  const ssize_t sent = ::send(client.fd.get(), client.response.data() + client.sent,
                              client.response.size() - client.sent, MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN || errno == EINTR;
  client.sent += static_cast<std::size_t>(sent);
  if (client.sent < client.response.size()) return true;
  // Unread bytes would make close() send RST, which can discard the response on its way.
  ::shutdown(client.fd.get(), SHUT_WR);
  char rest[2048];
  for (int i = 0; i < 16 && ::recv(client.fd.get(), rest, sizeof rest, 0) > 0; ++i) {
  }
  return false;
}

std::string HttpServer::answer(const std::string& request) const {
  const std::string_view line = std::string_view(request).substr(0, request.find("\r\n"));
  const std::size_t first = line.find(' ');
  const std::size_t second = line.find(' ', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos ||
      !line.substr(second + 1).starts_with("HTTP/1."))
    return refusal("400 Bad Request");
  const std::string_view method = line.substr(0, first);
  std::string_view path = line.substr(first + 1, second - first - 1);
  path = path.substr(0, path.find('?'));
  const bool is_head = method == "HEAD";
  if (method != "GET" && !is_head) return refusal("405 Method Not Allowed", "Allow: GET, HEAD\r\n");
  if (path == "/")
    return response("200 OK", "text/plain; charset=utf-8", "ztcp_stat: metrics are at /metrics\n",
                    !is_head);
  if (path != "/metrics") return refusal("404 Not Found");
  return response("200 OK", "text/plain; version=0.0.4; charset=utf-8", metrics_(), !is_head);
}

}  // namespace ztcp::stat
