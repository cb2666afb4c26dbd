// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/agreement.h"

#include <algorithm>
#include <bit>
#include <vector>

#include <fmt/format.h>

#include "transport/transport.h"

namespace ztcp::plugin {
namespace {

// Appends integers in little-endian order.
class Writer {
 public:
  explicit Writer(AgreementBytes out) : out_(out) {}
  template <class Integer>
  void put(Integer value) {
    for (std::size_t i = 0; i < sizeof value; ++i)
      out_[at_++] = static_cast<std::byte>(value >> (8U * i) & 0xffU);
  }

 private:
  AgreementBytes out_;
  std::size_t at_ = 0;
};

class Reader {
 public:
  explicit Reader(ConstAgreementBytes bytes) : bytes_(bytes) {}
  template <class Integer>
  void take(Integer& value) {
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < sizeof value; ++i)
      all |= std::to_integer<std::uint64_t>(bytes_[at_++]) << (8U * i);
    value = static_cast<Integer>(all);
  }

 private:
  ConstAgreementBytes bytes_;
  std::size_t at_ = 0;
};

template <class Fields, class Visit>
void visit_fields(Fields& a, Visit&& visit) {
  visit(a.tuner);
  visit(a.tuner_rule);
  visit(a.max_receives);
  visit(a.channels_per_peer);
  visit(a.nics);
  visit(a.devices);
  visit(a.max_message_bytes);
  visit(a.speed_mbps);
}

// Bandwidth in GB/s of a GPU's 16-lane PCIe link in NCCL's model, generation 4 to 6. Generation 3
// is left out: it would tell speeds from 100 Gb/s on apart that are equal for every newer GPU.
constexpr double kGpuLinks[] = {24, 48, 96};
constexpr double kMbpsPerGb = 8000;

// Number of such devices that NCCL takes to fill the link, as a power of two.
std::uint32_t channels_by_speed(std::uint32_t devices, std::uint32_t speed_mbps, double link) {
  const double each = speed_mbps / kMbpsPerGb / devices;
  std::uint32_t count = 0;
  for (double sum = 0; count < devices && sum < link; sum += each) ++count;
  return std::bit_ceil(count);
}

bool derives_other_channels(std::uint32_t devices, std::uint32_t ours, std::uint32_t theirs) {
  return std::ranges::any_of(kGpuLinks, [&](double link) {
    return channels_by_speed(devices, ours, link) != channels_by_speed(devices, theirs, link);
  });
}

bool shows_often(const Agreement& a) { return a.devices > a.nics; }

std::string tuner_text(const Agreement& a) {
  if (a.tuner == 0) return "leaves them to NCCL";
  const char* const network = to_string(static_cast<TransportKind>(a.tuner));
  return fmt::format("chooses NCCL's channels by size (rule {} of {})", a.tuner_rule, network);
}

std::string count_text(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string variable_text(const Agreement& a) {
  return a.channels_per_peer == 0 ? "not set" : fmt::format("{}", a.channels_per_peer);
}

// Compares two ranks, one clause per difference.
class Comparison {
 public:
  Comparison(const Agreement& ours, const RankName& us, const Agreement& theirs,
             const RankName& them)
      : ours_(ours),
        theirs_(theirs),
        us_(us.host.empty() ? "this rank" : fmt::format("this rank (host {})", us.host)),
        them_(them.host.empty() ? "the peer" : fmt::format("the peer (host {})", them.host)) {}

  std::string run() {
    compare_tuners();
    compare_devices();
    compare_limits();
    return fmt::format("{}", fmt::join(clauses_, "; "));
  }

 private:
  // The rank that tunes is the subject, so that every such line has the same words.
  void compare_tuners() {
    if (ours_.tuner == theirs_.tuner && ours_.tuner_rule == theirs_.tuner_rule) return;
    const bool is_ours_first = ours_.tuner != 0;
    const bool do_both = ours_.tuner != 0 && theirs_.tuner != 0;
    clauses_.push_back(fmt::format(
        "{} {}, {} {}, and ranks that differ in this wait for each other for ever: {}export "
        "ZTCP_TUNER=off on all hosts",
        is_ours_first ? us_ : them_, tuner_text(is_ours_first ? ours_ : theirs_),
        is_ours_first ? them_ : us_, tuner_text(is_ours_first ? theirs_ : ours_),
        do_both && ours_.tuner == theirs_.tuner ? "install the same ztcp on all hosts, or " : ""));
  }

  void compare_devices() {
    if (ours_.channels_per_peer != theirs_.channels_per_peer) {
      clauses_.push_back(fmt::format(
          "NCCL_NCHANNELS_PER_NET_PEER is {} at {} and {} at {}, and NCCL cuts messages by it: "
          "export the same value on all hosts, or unset it",
          variable_text(theirs_), them_, variable_text(ours_), us_));
      return;
    }
    if (ours_.channels_per_peer != 0 || !(shows_often(ours_) || shows_often(theirs_))) return;
    if (ours_.devices != theirs_.devices) {
      clauses_.push_back(fmt::format(
          "{} shows NCCL {} for {}, {} {} for {}, and NCCL cuts messages by their number: set the "
          "same nccl_devices for each NIC in every host's ztcp.conf; where there is none, name as "
          "many interfaces on all hosts (NCCL_SOCKET_IFNAME)",
          them_, count_text(theirs_.devices, "device"), count_text(theirs_.nics, "NIC"), us_,
          count_text(ours_.devices, "device"), count_text(ours_.nics, "NIC")));
    } else if (derives_other_channels(ours_.devices, ours_.speed_mbps, theirs_.speed_mbps)) {
      clauses_.push_back(fmt::format(
          "the {} of {} have {} Mb/s together, those of {} {}, and NCCL cuts messages by it: set "
          "the same speed_mbps for each NIC in every host's ztcp.conf, or export the same "
          "NCCL_NCHANNELS_PER_NET_PEER on all hosts",
          count_text(theirs_.devices, "device"), them_, theirs_.speed_mbps, us_, ours_.speed_mbps));
    }
  }

  void compare_limits() {
    const auto compare = [&](std::size_t theirs, std::size_t ours, const char* what) {
      if (theirs == ours) return;
      clauses_.push_back(fmt::format("{} allows {} {}, {} {}: install the same ztcp on all hosts",
                                     them_, theirs, what, us_, ours));
    };
    compare(theirs_.max_receives, ours_.max_receives, "buffers of one grouped receive");
    compare(theirs_.max_message_bytes, ours_.max_message_bytes, "bytes of one message");
  }

  const Agreement& ours_;
  const Agreement& theirs_;
  const std::string us_;
  const std::string them_;
  std::vector<std::string> clauses_;
};

}  // namespace

void encode(const Agreement& agreement, AgreementBytes out) {
  Writer writer(out);
  visit_fields(agreement, [&](const auto& field) { writer.put(field); });
}

Agreement decode_agreement(ConstAgreementBytes bytes) {
  Agreement out;
  Reader reader(bytes);
  visit_fields(out, [&](auto& field) { reader.take(field); });
  return out;
}

std::string differences(const Agreement& ours, const RankName& us, const Agreement& theirs,
                        const RankName& them) {
  return Comparison(ours, us, theirs, them).run();
}

}  // namespace ztcp::plugin
