// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/export/export.h"

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "core/address.h"
#include "tools/common/atomic_file.h"
#include "tools/ztcp_stat/export/exposition.h"
#include "tools/ztcp_stat/export/http_server.h"

namespace ztcp::stat {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

std::string text_of(const Error& error) {
  return fmt::format("{}{}{}: {}", error.where, error.sys_errno != 0 ? ": " : "",
                     error.sys_errno != 0 ? std::strerror(error.sys_errno) : "",
                     describe(error.code));
}

std::optional<Endpoint> parse_listen(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view port_text = text.substr(colon + 1);
  std::string_view host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    return std::nullopt;
  std::uint16_t port = 0;
  const auto [end, error] =
      std::from_chars(port_text.data(), port_text.data() + port_text.size(), port);
  if (error != std::errc{} || end != port_text.data() + port_text.size() || port_text.empty())
    return std::nullopt;
  const std::optional<IpAddress> address = parse_ip(host.empty() ? "::" : host);
  if (!address) return std::nullopt;
  return Endpoint{*address, port};
}

}  // namespace

std::string metrics_of(const Look& look) {
  std::vector<stats::Snapshot> snapshots;
  std::size_t damaged = 0;
  for (const Page& page : look.pages) {
    if (page.error.empty())
      snapshots.push_back(page.snapshot);
    else
      ++damaged;
  }
  return exposition(snapshots, damaged);
}

int write_textfile(const std::string& dir, const std::string& metrics) {
  const std::string path = (std::filesystem::path(dir) / "ztcp.prom").string();
  const Status written = tools::write_atomically(path, metrics);
  if (written) return 0;
  std::fprintf(stderr,
               "ztcp_stat: %s can't be written (%s). Name the folder of the node exporter's "
               "--collector.textfile.directory, and run as a user who may write to it.\n",
               path.c_str(), text_of(written.error()).c_str());
  return kExitFailed;
}

int listen_for_scrapes(const std::string& at, const std::function<std::string()>& metrics,
                       const std::atomic<bool>& stop) {
  const std::optional<Endpoint> endpoint = parse_listen(at);
  if (!endpoint) {
    std::fprintf(stderr,
                 "ztcp_stat: --listen %s is no ADDRESS:PORT: wanted 127.0.0.1:9469, [::1]:9469, or "
                 ":9469 for every address\n",
                 at.c_str());
    return kExitUsage;
  }
  auto server = HttpServer::open(*endpoint, metrics);
  if (!server) {
    std::fprintf(stderr, "ztcp_stat: can't listen at %s (%s)\n", at.c_str(),
                 text_of(server.error()).c_str());
    return kExitFailed;
  }
  std::fprintf(stderr, "ztcp_stat: metrics at http://%s/metrics\n",
               to_string(server->endpoint()).c_str());
  while (!stop.load()) {
    if (const Status served = server->serve(std::chrono::seconds(1)); !served) {
      std::fprintf(stderr, "ztcp_stat: the server at %s failed (%s)\n", at.c_str(),
                   text_of(served.error()).c_str());
      return kExitFailed;
    }
  }
  return 0;
}

}  // namespace ztcp::stat
