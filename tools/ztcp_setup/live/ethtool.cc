// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/live/ethtool.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <optional>
#include <span>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "tools/ztcp_setup/live/safe_path.h"

namespace ztcp::setup {
namespace {

constexpr const char* kFeatures = "features";
constexpr const char* kPrivateFlags = "private-flags";

// One interface, and a socket for its ioctls.
class Driver {
 public:
  static Result<Driver> open(const std::string& link) {
    if (link.size() >= IFNAMSIZ) return fail(Errc::kNoDevice, "ethtool");
    Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (socket.get() < 0) return fail_errno("socket");
    return Driver(link, std::move(socket));
  }

  // Returns the ioctl's result; `request` begins with its command.
  Result<int> ask(void* request) const {
    ifreq call{};
    std::memcpy(call.ifr_name, link_.c_str(), link_.size());
    call.ifr_data = static_cast<char*>(request);
    const int answer = ::ioctl(socket_.get(), SIOCETHTOOL, &call);
    if (answer < 0) return fail_errno("ethtool");
    return answer;
  }

 private:
  Driver(std::string link, Descriptor socket)
      : link_(std::move(link)), socket_(std::move(socket)) {}

  std::string link_;
  Descriptor socket_;
};

// Maps names to the numbers in one of the kernel's structures.
template <class Parameters>
struct Number {
  const char* name;
  __u32 Parameters::*member;
};
template <class Parameters>
struct Numbers {
  const char* group;
  std::uint32_t get;
  std::uint32_t set;
  std::span<const Number<Parameters>> all;
};

constexpr Number<ethtool_channels> kChannelNumbers[] = {
    {"rx", &ethtool_channels::rx_count},
    {"tx", &ethtool_channels::tx_count},
    {"other", &ethtool_channels::other_count},
    {"combined", &ethtool_channels::combined_count},
};
constexpr Number<ethtool_ringparam> kRingNumbers[] = {
    {"rx", &ethtool_ringparam::rx_pending},
    {"rx-mini", &ethtool_ringparam::rx_mini_pending},
    {"rx-jumbo", &ethtool_ringparam::rx_jumbo_pending},
    {"tx", &ethtool_ringparam::tx_pending},
};
constexpr Number<ethtool_coalesce> kCoalesceNumbers[] = {
    {"adaptive-rx", &ethtool_coalesce::use_adaptive_rx_coalesce},
    {"adaptive-tx", &ethtool_coalesce::use_adaptive_tx_coalesce},
    {"rx-usecs", &ethtool_coalesce::rx_coalesce_usecs},
    {"rx-frames", &ethtool_coalesce::rx_max_coalesced_frames},
    {"rx-usecs-irq", &ethtool_coalesce::rx_coalesce_usecs_irq},
    {"rx-frames-irq", &ethtool_coalesce::rx_max_coalesced_frames_irq},
    {"tx-usecs", &ethtool_coalesce::tx_coalesce_usecs},
    {"tx-frames", &ethtool_coalesce::tx_max_coalesced_frames},
    {"tx-usecs-irq", &ethtool_coalesce::tx_coalesce_usecs_irq},
    {"tx-frames-irq", &ethtool_coalesce::tx_max_coalesced_frames_irq},
    {"stats-block-usecs", &ethtool_coalesce::stats_block_coalesce_usecs},
    {"pkt-rate-low", &ethtool_coalesce::pkt_rate_low},
    {"rx-usecs-low", &ethtool_coalesce::rx_coalesce_usecs_low},
    {"rx-frames-low", &ethtool_coalesce::rx_max_coalesced_frames_low},
    {"tx-usecs-low", &ethtool_coalesce::tx_coalesce_usecs_low},
    {"tx-frames-low", &ethtool_coalesce::tx_max_coalesced_frames_low},
    {"pkt-rate-high", &ethtool_coalesce::pkt_rate_high},
    {"rx-usecs-high", &ethtool_coalesce::rx_coalesce_usecs_high},
    {"rx-frames-high", &ethtool_coalesce::rx_max_coalesced_frames_high},
    {"tx-usecs-high", &ethtool_coalesce::tx_coalesce_usecs_high},
    {"tx-frames-high", &ethtool_coalesce::tx_max_coalesced_frames_high},
    {"sample-interval", &ethtool_coalesce::rate_sample_interval},
};
constexpr Number<ethtool_pauseparam> kPauseNumbers[] = {
    {"autoneg", &ethtool_pauseparam::autoneg},
    {"rx", &ethtool_pauseparam::rx_pause},
    {"tx", &ethtool_pauseparam::tx_pause},
};
constexpr Numbers<ethtool_channels> kChannels{"channels", ETHTOOL_GCHANNELS, ETHTOOL_SCHANNELS,
                                              kChannelNumbers};
constexpr Numbers<ethtool_ringparam> kRing{"ring", ETHTOOL_GRINGPARAM, ETHTOOL_SRINGPARAM,
                                           kRingNumbers};
constexpr Numbers<ethtool_coalesce> kCoalesce{"coalesce", ETHTOOL_GCOALESCE, ETHTOOL_SCOALESCE,
                                              kCoalesceNumbers};
constexpr Numbers<ethtool_pauseparam> kPause{"pause", ETHTOOL_GPAUSEPARAM, ETHTOOL_SPAUSEPARAM,
                                             kPauseNumbers};

template <class Parameters>
Result<Parameters> get(const Driver& driver, const Numbers<Parameters>& numbers) {
  Parameters parameters{};
  parameters.cmd = numbers.get;
  ZTCP_CHECK(driver.ask(&parameters));
  return parameters;
}

template <class Parameters>
void read(const Driver& driver, const Numbers<Parameters>& numbers,
          std::vector<SettingGroup>& settings) {
  const auto parameters = get(driver, numbers);
  if (!parameters) return;
  SettingGroup group{numbers.group, {}};
  for (const auto& [name, member] : numbers.all)
    group.values.emplace_back(name, (*parameters).*member);
  settings.push_back(std::move(group));
}

template <class Parameters>
Status write(const Driver& driver, const Numbers<Parameters>& numbers, const SettingGroup& wanted) {
  Parameters parameters = ZTCP_TRY(get(driver, numbers));
  for (const auto& [name, value] : wanted.values)
    for (const auto& number : numbers.all)
      if (number.name == name) parameters.*number.member = value;
  parameters.cmd = numbers.set;
  ZTCP_CHECK(driver.ask(&parameters));
  return {};
}

// Space for a kernel structure that ends in an array.
template <class Header>
class EthtoolRequest {
 public:
  EthtoolRequest(std::uint32_t command, std::size_t array_bytes)
      : words_((sizeof(Header) + array_bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t)) {
    get().cmd = command;
  }
  Header& get() { return *reinterpret_cast<Header*>(words_.data()); }

 private:
  std::vector<std::uint64_t> words_;
};

// Indexed by bit. Unused bits have empty names.
Result<std::vector<std::string>> names_of(const Driver& driver, ethtool_stringset set) {
  EthtoolRequest<ethtool_sset_info> size(ETHTOOL_GSSET_INFO, sizeof(std::uint32_t));
  size.get().sset_mask = std::uint64_t{1} << set;
  ZTCP_CHECK(driver.ask(&size.get()));
  const std::uint32_t count = size.get().sset_mask == 0 ? 0 : size.get().data[0];
  EthtoolRequest<ethtool_gstrings> strings(ETHTOOL_GSTRINGS, std::size_t{count} * ETH_GSTRING_LEN);
  strings.get().string_set = set;
  strings.get().len = count;
  ZTCP_CHECK(driver.ask(&strings.get()));
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < std::min(count, strings.get().len); ++i) {
    const auto* name =
        reinterpret_cast<const char*>(strings.get().data) + std::size_t{i} * ETH_GSTRING_LEN;
    names.emplace_back(name, ::strnlen(name, ETH_GSTRING_LEN));
  }
  return names;
}

std::uint32_t blocks_of(const std::vector<std::string>& names) {
  return static_cast<std::uint32_t>((names.size() + 31) / 32);
}

// Reads the active features rather than the wanted ones: the operator sees the former.
Result<SettingGroup> read_features(const Driver& driver) {
  const std::vector<std::string> names = ZTCP_TRY(names_of(driver, ETH_SS_FEATURES));
  EthtoolRequest<ethtool_gfeatures> features(ETHTOOL_GFEATURES,
                                             blocks_of(names) * sizeof(ethtool_get_features_block));
  features.get().size = blocks_of(names);
  ZTCP_CHECK(driver.ask(&features.get()));
  SettingGroup group{kFeatures, {}};
  for (std::size_t i = 0; i < names.size() && i / 32 < features.get().size; ++i) {
    const ethtool_get_features_block& block = features.get().features[i / 32];
    const std::uint32_t bit = std::uint32_t{1} << (i % 32);
    if (names[i].empty() || (block.available & bit) == 0) continue;
    group.values.emplace_back(names[i], (block.active & bit) != 0 ? 1 : 0);
  }
  return group;
}

Status write_features(const Driver& driver, const SettingGroup& wanted) {
  const std::vector<std::string> names = ZTCP_TRY(names_of(driver, ETH_SS_FEATURES));
  EthtoolRequest<ethtool_sfeatures> features(ETHTOOL_SFEATURES,
                                             blocks_of(names) * sizeof(ethtool_set_features_block));
  features.get().size = blocks_of(names);
  for (const auto& [name, value] : wanted.values) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) return fail(Errc::kNoDevice, "unknown feature");
    const auto index = static_cast<std::size_t>(found - names.begin());
    const std::uint32_t bit = std::uint32_t{1} << (index % 32);
    ethtool_set_features_block& block = features.get().features[index / 32];
    block.valid |= bit;
    if (value != 0) block.requested |= bit;
  }
  ZTCP_CHECK(driver.ask(&features.get()));
  return {};
}

// At most 32 flags, one bit each.
Result<std::uint32_t> private_flags(const Driver& driver) {
  ethtool_value flags{ETHTOOL_GPFLAGS, 0};
  ZTCP_CHECK(driver.ask(&flags));
  return flags.data;
}

Result<SettingGroup> read_private_flags(const Driver& driver) {
  const std::vector<std::string> names = ZTCP_TRY(names_of(driver, ETH_SS_PRIV_FLAGS));
  const std::uint32_t flags = ZTCP_TRY(private_flags(driver));
  SettingGroup group{kPrivateFlags, {}};
  for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 32); ++i)
    if (!names[i].empty()) group.values.emplace_back(names[i], flags >> i & 1U);
  return group;
}

Status write_private_flags(const Driver& driver, const SettingGroup& wanted) {
  const std::vector<std::string> names = ZTCP_TRY(names_of(driver, ETH_SS_PRIV_FLAGS));
  ethtool_value flags{ETHTOOL_SPFLAGS, ZTCP_TRY(private_flags(driver))};
  for (const auto& [name, value] : wanted.values) {
    const auto index = std::find(names.begin(), names.end(), name) - names.begin();
    if (index >= std::min<std::ptrdiff_t>(std::ssize(names), 32))
      return fail(Errc::kNoDevice, "unknown flag");
    const std::uint32_t bit = std::uint32_t{1} << static_cast<unsigned>(index);
    flags.data = value != 0 ? flags.data | bit : flags.data & ~bit;
  }
  ZTCP_CHECK(driver.ask(&flags));
  return {};
}

// With autonegotiation on, many drivers report the negotiated values instead of the settings.
void drop_negotiated(std::vector<SettingGroup>& settings) {
  for (SettingGroup& group : settings)
    if (group.name == kPause.group && group.values.front().second != 0) group.values.resize(1);
}

}  // namespace

Result<std::vector<SettingGroup>> read_settings(const std::string& link) {
  const Driver driver = ZTCP_TRY(Driver::open(link));
  std::vector<SettingGroup> settings;
  // First: flags may affect the other settings.
  if (auto flags = read_private_flags(driver); flags && !flags->values.empty())
    settings.push_back(std::move(*flags));
  read(driver, kChannels, settings);
  read(driver, kRing, settings);
  read(driver, kCoalesce, settings);
  read(driver, kPause, settings);
  drop_negotiated(settings);
  if (auto features = read_features(driver); features && !features->values.empty())
    settings.push_back(std::move(*features));
  return settings;
}

std::optional<std::uint32_t> read_most_queues(const std::string& link) {
  const auto driver = Driver::open(link);
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  if (!driver || !driver->ask(&channels)) return std::nullopt;
  const std::uint32_t most =
      std::max(channels.max_combined, std::min(channels.max_rx, channels.max_tx));
  return most == 0 ? std::nullopt : std::optional(most);
}

Status write_settings(const std::string& link, const SettingGroup& wanted) {
  const Driver driver = ZTCP_TRY(Driver::open(link));
  if (wanted.name == kChannels.group) return write(driver, kChannels, wanted);
  if (wanted.name == kRing.group) return write(driver, kRing, wanted);
  if (wanted.name == kCoalesce.group) return write(driver, kCoalesce, wanted);
  if (wanted.name == kPause.group) return write(driver, kPause, wanted);
  if (wanted.name == kFeatures) return write_features(driver, wanted);
  if (wanted.name == kPrivateFlags) return write_private_flags(driver, wanted);
  return fail(Errc::kInvalidArgument, "ethtool");
}

}  // namespace ztcp::setup
