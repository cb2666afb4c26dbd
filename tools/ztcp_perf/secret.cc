// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/secret.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/ztcp_perf/failure.h"

namespace ztcp::perf {
namespace {

constexpr std::size_t kLeastSecret = 16;
constexpr std::size_t kMostSecret = 4096;

std::span<const std::byte> bytes_of_text(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Reads to the end of the file or pipe.
std::string read_secret(int fd, const std::string& source) {
  std::string text;
  std::array<char, 512> chunk;
  while (true) {
    const ssize_t n = read(fd, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("{}: {}", source, std::strerror(errno));
    if (n == 0) break;
    text.append(chunk.data(), static_cast<std::size_t>(n));
    if (text.size() > kMostSecret) fail("{}: more than {} bytes", source, kMostSecret);
  }
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  return text;
}

std::string long_enough(std::string secret, const std::string& source) {
  if (secret.size() < kLeastSecret)
    fail("{}: {} characters; a secret has at least {} (openssl rand -hex 16)", source,
         secret.size(), kLeastSecret);
  return secret;
}

std::string secret_in_file(const std::string& file) {
  const std::string source = "--secret-file " + file;
  // O_NONBLOCK: opening a FIFO without a writer must not block the run.
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat status {};
  if (fd < 0 || fstat(fd, &status) != 0) fail("{}: {}", source, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) fail("{}: not a regular file", source);
  constexpr mode_t kOthers = S_IRWXG | S_IRWXO;
  if ((status.st_mode & kOthers) != 0)
    fail("{}: accessible to other users (mode {:04o}); chmod 600 {}", source,
         status.st_mode & 07777, file);
  std::string secret = read_secret(fd, source);
  close(fd);
  return long_enough(std::move(secret), source);
}

}  // namespace

Nonce random_nonce() {
  Nonce nonce;
  if (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size()))
    fail("getrandom: {}", std::strerror(errno));
  return nonce;
}

std::string random_secret() {
  std::string text;
  for (const std::byte b : random_nonce()) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

std::string find_secret(const std::string& file, const Lookup& environment) {
  if (const auto fd = number_in(environment, "ZTCP_PERF_SECRET_FD")) {
    std::string secret = read_secret(*fd, "ZTCP_PERF_SECRET_FD");
    close(*fd);
    return long_enough(std::move(secret), "ZTCP_PERF_SECRET_FD");
  }
  if (!file.empty()) return secret_in_file(file);
  if (auto secret = environment("ZTCP_PERF_SECRET"))
    return long_enough(*std::move(secret), "ZTCP_PERF_SECRET");
  return {};
}

Proof prove_rank(const std::string& secret, const Nonce& challenge,
                 std::span<const std::byte> hello) {
  return msg::hmac_sha256(bytes_of_text(secret),
                          {bytes_of_text("ztcp_perf rank"), challenge, hello});
}

Proof prove_rank_0(const std::string& secret, const Nonce& challenge, const Nonce& rank_nonce) {
  return msg::hmac_sha256(bytes_of_text(secret),
                          {bytes_of_text("ztcp_perf rank 0"), rank_nonce, challenge});
}

}  // namespace ztcp::perf
