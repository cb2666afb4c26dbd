// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/environment.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <strings.h>
#include <unistd.h>

#include <fmt/format.h>

#include "config/schema.h"

namespace ztcp::config {
namespace {

// ztcp_perf and the reference plugin set these for their own processes, which load the plugin.
bool is_of_a_tool(std::string_view variable) {
  return variable.starts_with("ZTCP_PERF_") || variable.starts_with("ZTCP_REFERENCE_");
}

// NCCL's own variables, by which the user has set another tuner, or the number of channels.
bool says_channels(std::string_view name) {
  return name == "NCCL_TUNER_PLUGIN" || name == "NCCL_MIN_NCHANNELS" || name == "NCCL_MIN_CTAS";
}

constexpr std::string_view kTellsApart = "NCCL_NET_OPTIONAL_RECV_COMPLETION=";
constexpr std::string_view kChannelsPerPeer = "NCCL_NCHANNELS_PER_NET_PEER=";

// Parses like NCCL: 0 where NCCL ignores the value, and at most 64, its limit of channels.
std::uint8_t channels_of(const char* text) {
  return static_cast<std::uint8_t>(std::clamp(std::strtoll(text, nullptr, 0), 0LL, 64LL));
}

class Reader {
 public:
  explicit Reader(Environment& out) : out_(out) {}

  void take(std::string_view name, std::string_view value) {
    const auto known = environment_names();
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      const std::string_view meant = nearest(name, known);
      report(name,
             fmt::format("unknown variable{}",
                         meant.empty() ? "" : fmt::format(", did you mean {}?", meant)),
             fmt::format("unset {}", name));
      return;
    }
    // Launchers write NAME= to unset a variable that they always pass.
    if (value.empty()) return;
    if (name == "ZTCP_CONFIG") out_.config_path = value;
    if (name == "ZTCP_LOG") out_.log_file = value;
    if (name == "ZTCP_ON_ERROR") take_on_error(value);
    if (name == "ZTCP_LOCAL_RANK") take_local_rank(value);
    if (name == "ZTCP_TRANSPORT") take_transport(value);
    if (name == "ZTCP_TUNER") take_tuner(value);
    if (name == "ZTCP_STATISTICS") take_statistics(value);
    if (name == "ZTCP_COLLNET") take_collnet(value);
    if (name == "ZTCP_COLLNET_WIRE") take_collnet_wire(value);
  }

 private:
  void take_on_error(std::string_view value) {
    if (value == "fallback")
      out_.on_error = OnError::kFallback;
    else if (value != "fail")
      report("ZTCP_ON_ERROR", fmt::format("\"{}\" is neither fail nor fallback; using fail", value),
             "export ZTCP_ON_ERROR=fail");
  }

  // Start-up refuses an unknown transport, with a reason that every rank sees: no problem here.
  void take_transport(std::string_view value) {
    out_.transport_text = value;
    out_.transport = value == "ustack"    ? TransportRequest::kUstack
                     : value == "sockets" ? TransportRequest::kSockets
                     : value == "verbs"   ? TransportRequest::kVerbs
                                          : TransportRequest::kUnknown;
  }

  // Start-up refuses other values, as it does with transports: a guess would make this host choose
  // other channels than hosts with the right spelling.
  void take_tuner(std::string_view value) {
    if (value == "off" || value == "0")
      out_.untuned_by = fmt::format("ZTCP_TUNER={}", value);
    else if (value != "on" && value != "1")
      out_.tuner_fault = fmt::format(
          "ZTCP_TUNER={} is neither on (1) nor off (0), and all hosts of a job need the "
          "same; export ZTCP_TUNER=off or unset it, on all of them",
          value);
  }

  // Start-up refuses other values: hosts that differ fail in NCCL's init, or round differently.
  void take_collnet(std::string_view value) {
    if (value == "on" || value == "1")
      out_.collnet = true;
    else if (value == "off" || value == "0")
      out_.collnet = false;
    else
      out_.collnet_fault = fmt::format(
          "ZTCP_COLLNET={} is neither on (1) nor off (0); export ZTCP_COLLNET=off or unset it, on "
          "all hosts of the job",
          value);
  }

  void take_collnet_wire(std::string_view value) {
    if (value == "f32")
      out_.collnet_wire = CollnetWire::kF32;
    else if (value == "bf16")
      out_.collnet_wire = CollnetWire::kBf16;
    else if (value == "fp8")
      out_.collnet_wire = CollnetWire::kFp8;
    else
      out_.collnet_fault = fmt::format(
          "ZTCP_COLLNET_WIRE={} is neither f32, bf16 nor fp8; export ZTCP_COLLNET_WIRE=f32 or "
          "unset it, on all hosts of the job",
          value);
  }

  void take_statistics(std::string_view value) {
    if (value == "off" || value == "0")
      out_.has_statistics_page = false;
    else if (value != "on" && value != "1")
      report("ZTCP_STATISTICS",
             fmt::format("\"{}\" is neither on (1) nor off (0); using on", value),
             "export ZTCP_STATISTICS=off");
  }

  void take_local_rank(std::string_view value) {
    int rank = -1;
    const auto [end, ec] = std::from_chars(value.data(), value.data() + value.size(), rank);
    if (ec == std::errc{} && end == value.data() + value.size() && rank >= 0)
      out_.local_rank = rank;
    else
      report("ZTCP_LOCAL_RANK", fmt::format("\"{}\" is not a number from 0 up; ignored", value),
             "export ZTCP_LOCAL_RANK=$LOCAL_RANK");
  }

  void report(std::string_view name, std::string what, std::string mend) {
    out_.problems.push_back({std::string(name), std::move(what), std::move(mend)});
  }

  Environment& out_;
};

}  // namespace

Environment read_environment(const char* const* variables) {
  Environment environment;
  Reader reader(environment);
  for (; variables != nullptr && *variables != nullptr; ++variables) {
    const std::string_view variable = *variables;
    // NCCL ignores case, too.
    if (variable.starts_with("NCCL_NET="))
      environment.ztcp_is_demanded = strcasecmp(*variables + 9, "ztcp") == 0;
    if (variable.starts_with(kTellsApart))
      environment.receives_are_told_apart =
          std::strtoll(*variables + kTellsApart.size(), nullptr, 0) > 0;
    if (variable.starts_with(kChannelsPerPeer))
      environment.channels_per_peer = channels_of(*variables + kChannelsPerPeer.size());
    const auto equals = variable.find('=');
    if (equals == std::string_view::npos) continue;
    if (says_channels(variable.substr(0, equals)) && equals + 1 != variable.size())
      environment.untuned_by = variable;
    if (!variable.starts_with("ZTCP_")) continue;
    if (is_of_a_tool(variable)) continue;
    reader.take(variable.substr(0, equals), variable.substr(equals + 1));
  }
  return environment;
}

Environment read_environment() { return read_environment(environ); }

std::string config_path() { return read_environment().config_path; }

}  // namespace ztcp::config
