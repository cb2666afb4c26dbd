// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The settings of a script.
#include <functional>
#include <map>

#include <fmt/format.h>

#include "tests/scripts/script_runner.h"
#include "transport/tcp/auto_control.h"
#include "transport/tcp/bbr.h"
#include "transport/tcp/dctcp.h"
#include "transport/tcp/swift.h"

namespace ztcp::tcp::test {
namespace {

bool is_on(const std::string& value) {
  if (value != "on" && value != "off") throw ScriptError("on or off");
  return value == "on";
}

// As transport/ustack/nic_config.cc does.
void set_congestion_control(TcpSettings& tcp, const std::string& name) {
  if (name == "dctcp") {
    tcp.congestion_control_by_marks = make_congestion_control<Dctcp>;
  } else if (name == "bbr") {
    tcp.congestion_control = make_congestion_control<Bbr>;
  } else if (name == "swift") {
    tcp.congestion_control = make_congestion_control<Swift>;
  } else if (name == "auto") {
    tcp.congestion_control = make_congestion_control<AutoControl>;
    tcp.congestion_control_by_marks = make_auto_control_by_marks;
  } else if (name != "cubic") {
    throw ScriptError(fmt::format("\"{}\" is no congestion control", name));
  }
}

void set_address(StackConfig& config, const std::string& text) {
  if (text == "auto") {
    config.address = {};
    config.finds_address = true;
    return;
  }
  const auto prefix = parse_ip_prefix(text);
  if (!prefix) throw ScriptError(fmt::format("\"{}\" is no address with a prefix", text));
  config.address = *prefix;
}

void set_gateway(StackConfig& config, const std::string& text) {
  if (text == "auto")
    config.finds_router = true;
  else
    config.gateway = Names(config.is_ipv6(), config.address.address).address(text);
}

}  // namespace

void ScriptRunner::configure(Words words) {
  if (has_begun_) throw ScriptError("settings come first");
  if (words.size() != 2) throw ScriptError("set KEY VALUE");
  const std::string& value = words[1];
  TcpSettings& tcp = config_.tcp;
  const std::map<std::string, std::function<void()>> keys{
      {"rto_min", [&] { tcp.rto_min = to_duration(value); }},
      {"rto_initial", [&] { tcp.rto_initial = to_duration(value); }},
      {"rto_max", [&] { tcp.rto_max = to_duration(value); }},
      {"user_timeout", [&] { tcp.user_timeout = to_duration(value); }},
      {"connect_timeout", [&] { tcp.connect_timeout = to_duration(value); }},
      {"keepalive_idle", [&] { tcp.keepalive_idle = to_duration(value); }},
      {"time_wait", [&] { tcp.time_wait = to_duration(value); }},
      {"initial_window",
       [&] { tcp.initial_window_segments = static_cast<std::uint32_t>(to_number(value)); }},
      {"connections",
       [&] { config_.max_connections = static_cast<std::size_t>(to_number(value)); }},
      {"congestion_control", [&] { set_congestion_control(tcp, value); }},
      {"dscp", [&] { config_.dscp = static_cast<std::uint8_t>(to_number(value)); }},
      {"mtu", [&] { config_.mtu_bytes = static_cast<std::uint16_t>(to_number(value)); }},
      {"pacing", [&] { tcp.pacing = is_on(value); }},
      {"ecn", [&] { tcp.ecn = is_on(value); }},
      {"reroute", [&] { tcp.reroutes = is_on(value); }},
      {"ipv6", [&] { config_.address = test_config(is_on(value)).address; }},
      {"address", [&] { set_address(config_, value); }},
      {"gateway", [&] { set_gateway(config_, value); }},
  };
  const auto found = keys.find(words[0]);
  if (found == keys.end()) throw ScriptError(fmt::format("\"{}\" is no setting", words[0]));
  found->second();
}

}  // namespace ztcp::tcp::test
