// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/nccl_variables.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "transport/verbs/session/rails.h"

namespace ztcp::verbs {
namespace {

using Variables = NcclVariables;

// As NCCL reads numbers: "106", "0x6a", "0152".
std::optional<long long> to_number(std::string text) {
  while (!text.empty() && text.back() == ' ') text.pop_back();
  char* end = nullptr;
  errno = 0;
  const long long number = std::strtoll(text.c_str(), &end, 0);
  if (text.empty() || end == text.c_str() || *end != '\0' || errno != 0) return std::nullopt;
  return number;
}

// Variables with honoured numbers. In NCCL a negative number means the default.
struct Honoured {
  const char* name;
  long long most;
  void (*take)(Variables&, int);
};
constexpr long long kAnyNumber = std::numeric_limits<int>::max();
constexpr std::array kHonoured{
    Honoured{"NCCL_IB_DISABLE", kAnyNumber, [](Variables& to, int n) { to.is_disabled = n != 0; }},
    Honoured{"NCCL_IB_DEVICE_PCI_ORDER", kAnyNumber,
             [](Variables& to, int n) { to.is_pci_ordered = n != 0; }},
    Honoured{"NCCL_IB_QUERY_PORT_SPEED", kAnyNumber,
             [](Variables& to, int n) { to.asks_port_speed = n != 0; }},
    Honoured{"NCCL_IB_GID_INDEX", kMaxGidIndex, [](Variables& to, int n) { to.gid_index = n; }},
    Honoured{"NCCL_IB_ROUTABLE_FLID_GID_INDEX", kAnyNumber,
             [](Variables& to, int n) { to.gid_wish.flid_index = n; }},
    Honoured{"NCCL_IB_TIMEOUT", 31, [](Variables& to, int n) { to.timeout = n; }},
    Honoured{"NCCL_IB_RETRY_CNT", 7, [](Variables& to, int n) { to.retries = n; }},
    Honoured{"NCCL_IB_TC", 255, [](Variables& to, int n) { to.traffic_class = n; }},
    Honoured{"NCCL_IB_FIFO_TC", 255, [](Variables& to, int n) { to.slot_traffic_class = n; }},
    Honoured{"NCCL_IB_SL", 15, [](Variables& to, int n) { to.service_level = n; }},
    Honoured{"NCCL_IB_QPS_PER_CONNECTION", 128,
             [](Variables& to, int n) {
               to.queue_pairs = std::clamp(static_cast<std::uint32_t>(n), 1U, kMaxQueuePairs);
             }},
    Honoured{"NCCL_IB_SPLIT_DATA_ON_QPS", kAnyNumber,
             [](Variables& to, int n) { to.is_split = n == 1; }},
    Honoured{"NCCL_IB_PCI_RELAXED_ORDERING", 2,
             [](Variables& to, int n) { to.is_relaxed = n != 0; }},
    Honoured{"NCCL_IB_ECE_ENABLE", kAnyNumber, [](Variables& to, int n) { to.has_ece = n != 0; }},
    Honoured{"NCCL_IB_PKEY", 65535,
             [](Variables& to, int n) { to.pkey_index = static_cast<std::uint16_t>(n); }},
    Honoured{"NCCL_IB_MERGE_NICS", kAnyNumber, [](Variables& to, int n) { to.merges = n != 0; }},
    Honoured{"NCCL_GDR_FLUSH_DISABLE", kAnyNumber,
             [](Variables& to, int n) { to.is_flush_disabled = n != 0; }},
    Honoured{"NCCL_IB_ADAPTIVE_ROUTING", kAnyNumber,
             [](Variables& to, int n) { to.adaptive_routing = n; }},
    Honoured{"NCCL_IB_AR_THRESHOLD", kAnyNumber,
             [](Variables& to, int n) { to.adaptive_threshold = n; }}};

// Variables with honoured words.
constexpr std::array kWords{"NCCL_IB_HCA", "NCCL_IBVERBS_LIB", "NCCL_IB_ADDR_FAMILY",
                            "NCCL_IB_ADDR_RANGE", "NCCL_IB_ROCE_VERSION_NUM"};

// Variables that change NCCL's own network, and have no effect here.
struct Unheeded {
  const char* name;
  long long here;  // The value that describes our behaviour; negative: there is none.
  const char* what;
};
constexpr const char* kOwnFailover =
    "NICs of merged devices that fail are gone without, and taken back, by ztcp's own rules";
constexpr std::array kUnheeded{
    Unheeded{"NCCL_IB_DATA_DIRECT", 0, "NICs reach GPUs by DMA-BUF or a kernel module alone"},
    Unheeded{"NCCL_IB_OOO_RQ", 0, "receives are taken in order"},
    Unheeded{"NCCL_IB_USE_INLINE", 1, "up to 64 bytes of host memory always go inline"},
    Unheeded{"NCCL_IB_MERGE_VFS", 0, "virtual functions are devices of their own"},
    Unheeded{"NCCL_IB_RETURN_ASYNC_EVENTS", 1, "a device that fails ends its connections"},
    Unheeded{"NCCL_IB_WARN_RAIL_LOCAL", 0, "that rails differ is said where it matters"},
    Unheeded{"NCCL_IB_SUBNET_AWARE_ROUTING", 0, "a connection goes over the device NCCL names"},
    Unheeded{"NCCL_IB_SUBNET_PREFIX_LEN", -1, "a connection goes over the device NCCL names"},
    Unheeded{"NCCL_IB_PREPOST_RECEIVE_WORK_REQUESTS", 1, "receives are always posted ahead"},
    Unheeded{"NCCL_IB_RECEIVER_SIDE_MATCHING_SCHEME", -1, "messages are matched by ztcp's slots"},
    Unheeded{"NCCL_IB_MQP_RETRY_ALL", 0, "a queue pair that can't be joined is refused at once"},
    Unheeded{"NCCL_IB_MQP_RETRY_CNT", 0, "a queue pair that can't be joined is refused at once"},
    Unheeded{"NCCL_IB_MQP_RETRY_SLEEP_MSEC", -1,
             "a queue pair that can't be joined is refused at once"},
    Unheeded{"NCCL_IB_RESILIENCY_PORT_FAILOVER", 1, kOwnFailover},
    Unheeded{"NCCL_IB_RESILIENCY_PORT_FAILOVER_MAX_ATTEMPTS", -1, kOwnFailover},
    Unheeded{"NCCL_IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY", -1, kOwnFailover},
    Unheeded{"NCCL_IB_RESILIENCY_PORT_RECOVERY", 1, kOwnFailover},
    Unheeded{"NCCL_IB_RESILIENCY_PORT_RECOVERY_ACK_TIMEOUT", -1, kOwnFailover},
    Unheeded{"NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_INTERVAL", -1, kOwnFailover},
    Unheeded{"NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_SIZE", -1, kOwnFailover},
    Unheeded{"NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_SEQUENCE_SIZE", -1, kOwnFailover},
    Unheeded{"NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_TIMEOUT", -1, kOwnFailover},
    Unheeded{"NCCL_IB_RESILIENCY_PORT_RECOVERY_ATTEMPTS_MAX", -1, kOwnFailover},
    Unheeded{"NCCL_IB_RESILIENCY_PORT_RECOVERY_START_DELAY", -1, kOwnFailover}};

class Reader {
 public:
  Reader(const std::function<const char*(const char*)>& get, Variables& to) : get_(get), to_(to) {}

  std::string text(const char* name) const {
    const char* const value = get_(name);
    return value != nullptr ? value : "";
  }

  void take_numbers() {
    for (const Honoured& one : kHonoured) {
      const std::string value = text(one.name);
      if (value.empty()) continue;
      const auto number = to_number(value);
      if (!number || *number > one.most)
        ignore(one.name, value);
      else if (*number >= 0)
        one.take(to_, static_cast<int>(*number));
    }
    for (const Unheeded& one : kUnheeded) {
      const std::string value = text(one.name);
      const auto number = to_number(value);
      if (value.empty() || (number && (*number == one.here || *number < 0))) continue;
      to_.unheeded.push_back(fmt::format("{}={}: {}", one.name, value, one.what));
    }
  }

  // The preferred GID.
  void take_wish() {
    GidWish& wish = to_.gid_wish;
    if (const std::string family = text("NCCL_IB_ADDR_FAMILY"); family == "AF_INET")
      wish.family = GidWish::Family::kIpv4;
    else if (family == "AF_INET6")
      wish.family = GidWish::Family::kIpv6;
    else if (!family.empty())
      ignore("NCCL_IB_ADDR_FAMILY", family);
    if (const std::string range = text("NCCL_IB_ADDR_RANGE"); !range.empty()) {
      wish.range = parse_ip_prefix(range);
      if (!wish.range) ignore("NCCL_IB_ADDR_RANGE", range);
    }
    const std::string version = text("NCCL_IB_ROCE_VERSION_NUM");
    if (const auto number = to_number(version); number == 1)
      wish.version = GidType::kRoceV1;
    else if (!version.empty() && number != 2)
      ignore("NCCL_IB_ROCE_VERSION_NUM", version);
    add_wish("NCCL_IB_ADDR_FAMILY", wish.family != GidWish::Family::kAny);
    add_wish("NCCL_IB_ADDR_RANGE", wish.range.has_value());
    add_wish("NCCL_IB_ROCE_VERSION_NUM", wish.version != GidType::kRoceV2);
  }

 private:
  void ignore(const char* name, const std::string& value) {
    to_.ignored.push_back(fmt::format("{}={}", name, value));
  }
  void add_wish(const char* name, bool is_made) {
    if (!is_made) return;
    to_.gid_wished_by +=
        fmt::format("{}{}={}", to_.gid_wished_by.empty() ? "" : ", ", name, text(name));
  }

  const std::function<const char*(const char*)>& get_;
  Variables& to_;
};

// The next of the numbers in "1:0:2"; -1: absent or empty. A word that is no number is 0, as in
// NCCL.
int take_number(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find(':'));
  text.remove_prefix(std::min(text.size(), word.size() + 1));
  if (word.empty()) return -1;
  int number = 0;
  std::from_chars(word.data(), word.data() + word.size(), number);
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
    Name name{std::string(word.substr(0, word.find(':')))};
    std::string_view numbers = word.substr(std::min(word.size(), name.device.size() + 1));
    name.port = take_number(numbers);
    name.rail = take_number(numbers);
    name.plane = take_number(numbers);
    if (!name.device.empty()) names_.push_back(std::move(name));
  }
}

const HcaFilter::Name* HcaFilter::find(std::string_view device, int port) const {
  const auto found = std::find_if(names_.begin(), names_.end(), [&](const Name& name) {
    return means(name, device) && (name.port < 0 || name.port == port);
  });
  return found == names_.end() ? nullptr : &*found;
}

bool HcaFilter::fits(std::string_view device, int port) const {
  return names_.empty() || (find(device, port) != nullptr) != is_excluding_;
}

bool HcaFilter::fits(std::string_view device) const {
  if (names_.empty()) return true;
  const bool is_named = std::any_of(names_.begin(), names_.end(), [&](const Name& name) {
    return means(name, device) && (name.port < 0 || !is_excluding_);
  });
  return is_named != is_excluding_;
}

NcclVariables read_nccl_variables(const std::function<const char*(const char*)>& get) {
  NcclVariables out;
  Reader reader(get, out);
  out.devices_text = reader.text("NCCL_IB_HCA");
  out.devices = HcaFilter(out.devices_text);
  out.library = reader.text("NCCL_IBVERBS_LIB");
  reader.take_numbers();
  reader.take_wish();
  return out;
}

NcclVariables read_nccl_variables() {
  // NCCL's service threads read the environment while nobody may write it; so do we, once.
  return read_nccl_variables([](const char* name) { return std::getenv(name); });  // NOLINT
}

std::vector<std::string> nccl_variable_names() {
  std::vector<std::string> out(kWords.begin(), kWords.end());
  for (const Honoured& one : kHonoured) out.emplace_back(one.name);
  for (const Unheeded& one : kUnheeded) out.emplace_back(one.name);
  return out;
}

}  // namespace ztcp::verbs
