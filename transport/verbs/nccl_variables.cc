// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/nccl_variables.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>

#include "transport/verbs/session/rails.h"

namespace ztcp::verbs {
namespace {

std::optional<int> to_number(std::string_view text) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return number;
}

}  // namespace

HcaFilter::HcaFilter(std::string_view text) {
  if (text.starts_with('^')) {
    is_excluding_ = true;
    text.remove_prefix(1);
  }
  if (text.starts_with('=')) {
    is_exact_ = true;
    text.remove_prefix(1);
  }
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const std::size_t colon = word.find(':');
    Name name{std::string(word.substr(0, colon))};
    if (colon != std::string_view::npos) name.port = to_number(word.substr(colon + 1)).value_or(-1);
    if (!name.device.empty()) names_.push_back(std::move(name));
  }
}

bool HcaFilter::fits(std::string_view device, int port) const {
  if (names_.empty()) return true;
  const bool is_named = std::any_of(names_.begin(), names_.end(), [&](const Name& name) {
    return (is_exact_ ? device == name.device : device.starts_with(name.device)) &&
           (name.port < 0 || name.port == port);
  });
  return is_named != is_excluding_;
}

NcclVariables read_nccl_variables(const std::function<const char*(const char*)>& get) {
  NcclVariables out;
  const auto text = [&](const char* name) {
    const char* const value = get(name);
    return std::string_view(value != nullptr ? value : "");
  };
  // NCCL's own way to say "as you like" is a negative number.
  const auto take = [&](const char* name, int most, auto& to) {
    const std::string_view value = text(name);
    if (value.empty()) return;
    const std::optional<int> number = to_number(value);
    if (!number || *number > most)
      out.ignored.push_back(std::string(name) + "=" + std::string(value));
    else if (*number >= 0)
      to = static_cast<std::remove_reference_t<decltype(to)>>(*number);
  };
  out.devices_text = text("NCCL_IB_HCA");
  out.devices = HcaFilter(out.devices_text);
  take("NCCL_IB_DISABLE", 1, out.is_disabled);
  take("NCCL_IB_GID_INDEX", 255, out.gid_index);
  take("NCCL_IB_TIMEOUT", 31, out.timeout);
  take("NCCL_IB_RETRY_CNT", 7, out.retries);
  take("NCCL_IB_TC", 255, out.traffic_class);
  take("NCCL_IB_SL", 15, out.service_level);
  take("NCCL_IB_PCI_RELAXED_ORDERING", 2, out.is_relaxed);
  take("NCCL_IB_PKEY", 65535, out.pkey_index);
  take("NCCL_GDR_FLUSH_DISABLE", 1, out.is_flush_disabled);
  take("NCCL_IB_MERGE_NICS", 1, out.merges);
  take("NCCL_IB_ADAPTIVE_ROUTING", 1, out.adaptive_routing);
  take("NCCL_IB_AR_THRESHOLD", std::numeric_limits<int>::max(), out.adaptive_threshold);
  take("NCCL_IB_QPS_PER_CONNECTION", 128, out.queue_pairs);
  out.queue_pairs = std::clamp(out.queue_pairs, 1U, kMaxQueuePairs);
  return out;
}

NcclVariables read_nccl_variables() {
  // NCCL's service threads read the environment while nobody may write it; so do we, once.
  return read_nccl_variables([](const char* name) { return std::getenv(name); });  // NOLINT
}

}  // namespace ztcp::verbs
