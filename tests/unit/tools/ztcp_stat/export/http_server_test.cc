// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/export/http_server.h"

#include <atomic>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/socket_address.h"

namespace ztcp::stat {
namespace {

class HttpServerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = HttpServer::open({*parse_ip("127.0.0.1"), 0}, [] { return "ztcp_x{} 1\n"; });
    ASSERT_TRUE(opened);
    at_ = opened->endpoint();
    thread_ = std::thread([this, server = std::move(*opened)]() mutable {
      while (!stop_.load()) {
        if (!server.serve(std::chrono::milliseconds(20))) return;
      }
    });
  }
  void TearDown() override {
    stop_.store(true);
    if (thread_.joinable()) thread_.join();
  }

  Descriptor connect() const {
    SocketAddress address = to_socket_address(at_);
    Descriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval limit{20, 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    EXPECT_EQ(::connect(fd.get(), address.get(), address.size_bytes), 0);
    return fd;
  }
  static void send_text(const Descriptor& fd, const std::string& text) {
    ::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  static std::string read_all(const Descriptor& fd) {
    std::string out;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::recv(fd.get(), buffer, sizeof buffer, 0)) > 0;)
      out.append(buffer, static_cast<std::size_t>(got));
    return out;
  }
  std::string ask(const std::string& request) const {
    const Descriptor fd = connect();
    send_text(fd, request);
    return read_all(fd);
  }

 private:
  Endpoint at_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

TEST_F(HttpServerTest, ServesTheMetrics) {
  const std::string answer = ask("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_NE(answer.find("version=0.0.4"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("\r\n\r\nztcp_x{} 1\n")) << answer;
}

TEST_F(HttpServerTest, HeadHasNoBody) {
  const std::string answer = ask("HEAD /metrics HTTP/1.1\r\n\r\n");
  EXPECT_NE(answer.find("Content-Length: 11\r\n"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
}

TEST_F(HttpServerTest, RefusesOtherPathsMethodsAndJunk) {
  EXPECT_TRUE(ask("GET /etc/passwd HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
  EXPECT_TRUE(ask("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
  EXPECT_TRUE(ask("junk\r\n\r\n").starts_with("HTTP/1.1 400"));
  EXPECT_TRUE(ask(std::string(1000, '\0') + "\r\n\r\n").starts_with("HTTP/1.1 400"));
}

TEST_F(HttpServerTest, RefusesARequestThatIsTooLarge) {
  EXPECT_TRUE(
      ask("GET /metrics HTTP/1.1\r\nA: " + std::string(10'000, 'a')).starts_with("HTTP/1.1 431"));
}

TEST_F(HttpServerTest, SilentClientsDoNotDelayOthers) {
  std::vector<Descriptor> silent;
  for (std::size_t i = 0; i < HttpServer::kMostClients + 8; ++i) silent.push_back(connect());
  EXPECT_TRUE(ask("GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, AClientWithoutARequestIsDisconnectedAfterItsTimeout) {
  const Descriptor fd = connect();
  send_text(fd, "GET /met");
  EXPECT_EQ(read_all(fd), "");
}

TEST_F(HttpServerTest, ARequestInPiecesIsServed) {
  const Descriptor fd = connect();
  for (const char c : std::string("GET /metrics HTTP/1.1\r\n\r\n"))
    send_text(fd, std::string(1, c));
  EXPECT_TRUE(read_all(fd).starts_with("HTTP/1.1 200"));
}

}  // namespace
}  // namespace ztcp::stat
