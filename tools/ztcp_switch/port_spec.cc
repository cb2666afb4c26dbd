// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <array>
#include <charconv>
#include <filesystem>
#include <functional>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "tools/common/quantity.h"
#include "tools/ztcp_switch/options.h"

namespace ztcp::fabric {
namespace {

using link::Impairment;

// A key of an impairment, with its form and parser.
struct Key {
  std::string_view name;
  std::string_view takes;
  bool (*set)(Impairment&, std::string_view);
};

template <auto Member, auto Parse>
bool assign(Impairment& to, std::string_view text) {
  const auto value = Parse(text);
  if (!value) return false;
  using T = std::remove_reference_t<decltype(to.*Member)>;
  if constexpr (std::is_integral_v<T>)
    if (*value > std::numeric_limits<T>::max()) return false;
  to.*Member = static_cast<T>(*value);
  return true;
}

std::optional<std::uint32_t> parse_paths(std::string_view text) {
  constexpr std::uint32_t kMost = 1024;
  std::uint32_t paths = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), paths);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return paths >= 1 && paths <= kMost ? std::optional(paths) : std::nullopt;
}

constexpr std::array kKeys = {
    Key{"loss", "a share (1%)", assign<&Impairment::loss, tools::parse_probability>},
    Key{"duplicate", "a share (1%)", assign<&Impairment::duplicate, tools::parse_probability>},
    Key{"reorder", "a share (1%)", assign<&Impairment::reorder, tools::parse_probability>},
    Key{"corrupt", "a share (1%)", assign<&Impairment::corrupt, tools::parse_probability>},
    Key{"delay", "a time (2ms)", assign<&Impairment::delay, tools::parse_duration>},
    Key{"jitter", "a time (2ms)", assign<&Impairment::jitter, tools::parse_duration>},
    Key{"reorder-delay", "a time (2ms)", assign<&Impairment::reorder_delay, tools::parse_duration>},
    Key{"rate", "a rate (1Gbit)", assign<&Impairment::rate_bits_per_second, tools::parse_bit_rate>},
    Key{"queue", "a size (1M)", assign<&Impairment::queue_limit_bytes, tools::parse_bytes>},
    Key{"paths", "a number (4)", assign<&Impairment::paths, parse_paths>},
    Key{"path-skew", "a time (100us)", assign<&Impairment::path_skew, tools::parse_duration>},
    Key{"ecn-mark", "a size (64K)", assign<&Impairment::ecn_threshold_bytes, tools::parse_bytes>},
};

template <class T>
bool parse_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

// Splits off the part before `separator`.
std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  const std::string_view part = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view{} : text.substr(at + 1);
  return part;
}

tl::unexpected<std::string> refused(std::string_view spec, const std::string& reason) {
  return tl::unexpected(fmt::format("--port {}: {}", spec, reason));
}

// Reads the keys after the target.
Result<void, std::string> read_keys(std::string_view spec, std::string_view rest,
                                    PortOptions& port) {
  while (!rest.empty()) {
    std::string_view value = take_until(rest, ',');
    const std::string_view key = take_until(value, '=');
    if (key == "id") {
      if (!parse_number(value, port.memif_id))
        return refused(spec, fmt::format("id takes a number, not '{}'", value));
      continue;
    }
    if (key == "mtu") {
      if (!parse_number(value, port.mtu_bytes) || port.mtu_bytes < 576)
        return refused(spec, fmt::format("mtu takes 576 to 65280, not '{}'", value));
      continue;
    }
    const bool entering = key.starts_with("in.");
    const auto set = entering ? set_impairment(port.settings.from_peer, key.substr(3), value)
                              : set_impairment(port.settings.to_peer, key, value);
    if (!set) return refused(spec, set.error());
  }
  return {};
}

}  // namespace

Result<void, std::string> set_impairment(Impairment& to, std::string_view key,
                                         std::string_view value) {
  for (const Key& known : kKeys) {
    if (known.name != key) continue;
    if (known.set(to, value)) return {};
    return tl::unexpected(fmt::format("{} takes {}, not '{}'", key, known.takes, value));
  }
  return tl::unexpected(fmt::format("unknown key '{}'", key));
}

Result<PortOptions, std::string> parse_port(std::string_view text, const PortSettings& defaults) {
  PortOptions port;
  port.settings = defaults;
  std::string_view rest = text;
  const std::string_view target = take_until(rest, ',');
  std::string_view name = target;
  const std::string_view kind = take_until(name, ':');
  if ((kind != "memif" && kind != "tap") || name.empty())
    return refused(text, "expected memif:SOCKET, tap:NAME or nic:NAME");
  port.kind = kind == "tap" ? PortOptions::Kind::kTap : PortOptions::Kind::kMemif;
  // memif's socket code requires an absolute path.
  port.target = kind == "tap" ? std::string(name) : std::filesystem::absolute(name).string();
  port.settings.name = std::string(target);
  ZTCP_CHECK(read_keys(text, rest, port));
  return port;
}

Result<void, std::string> adjust_port(std::string_view text, std::vector<PortOptions>& ports) {
  std::string_view rest = text;
  const std::string_view target = take_until(rest, ',');
  for (PortOptions& port : ports) {
    if (port.settings.name != target.substr(4)) continue;
    return read_keys(text, rest, port);
  }
  return refused(text, "the config has no such memif NIC");
}

}  // namespace ztcp::fabric
