// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/support/verbs/soft_nic/settings.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "tests/support/verbs/soft_nic/counters.h"

namespace ztcp::soft_nic {
namespace {

[[noreturn]] void refuse(std::string_view word) {
  std::fprintf(stderr, "soft NIC: %.*s is nothing that it knows\n", static_cast<int>(word.size()),
               word.data());
  std::abort();
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return out;
}

// "12@500"
std::optional<Fault> fault(std::string_view text) {
  const std::size_t at = text.find('@');
  if (at == std::string_view::npos) return std::nullopt;
  const auto value = number(text.substr(0, at));
  const auto when = number(text.substr(at + 1));
  if (!value || !when) return std::nullopt;
  return Fault{*value, *when};
}

bool take(std::string_view word, Faults& out) {
  const std::size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  if (equals == std::string_view::npos) {
    if (name == "hold") return out.holds_gpu_writes = true;
    if (name == "peer-memory") return out.has_peer_memory = true;
    if (name == "no-dmabuf") return !(out.knows_dmabuf = false);
    return false;
  }
  const std::string_view value = word.substr(equals + 1);
  const auto as_fault = [&](Fault& to) {
    const auto read = fault(value);
    if (read) to = *read;
    return read.has_value();
  };
  const auto as_number = [&](std::uint64_t& to) {
    const auto read = number(value);
    if (read) to = *read;
    return read.has_value();
  };
  if (name == "fail") return as_fault(out.fail);
  if (name == "refuse") return as_fault(out.refuse);
  if (name == "delay") return as_fault(out.delay);
  if (name == "seed") return as_number(out.seed);
  if (name == "down") return as_number(out.down_at);
  if (name == "up") return as_number(out.up_after_ms);
  if (name == "fatal") return as_number(out.fatal_at);
  if (name == "drop") return as_number(out.drop_of);
  return name == "rnr" && as_number(out.rnr_of);
}

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value != nullptr ? value : "";
}

}  // namespace

Faults parse_faults(std::string_view text) {
  Faults out;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (!word.empty() && !take(word, out)) refuse(word);
  }
  return out;
}

Settings read_settings() {
  Settings out;
  out.folder = variable("SOFT_NIC_FOLDER");
  if (const std::string_view text = variable("SOFT_NIC_DEVICES"); !text.empty()) {
    const auto count = number(text);
    if (!count || *count > kMostDevices) refuse(text);
    out.devices = static_cast<std::uint32_t>(*count);
  }
  out.faults = parse_faults(variable("SOFT_NIC_FAULTS"));
  return out;
}

}  // namespace ztcp::soft_nic
