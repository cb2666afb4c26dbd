// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whether the network below RoCE avoids packet loss: priority flow control (PFC, IEEE 802.1Qbb) and
// congestion notification (ECN, by which RoCE NICs adapt their rate), as far as the host's end of
// the cable shows it without a vendor's tools. No host can see the switches' settings.
#include <chrono>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "config/machine/rdma.h"
#include "config/machine/readings.h"
#include "config/machine/text.h"
#include "core/shell_word.h"
#include "tools/ztcp_setup/check/checks.h"

namespace ztcp::setup {
namespace {

using config::Severity;

constexpr std::chrono::seconds kDcbLimit{10};
constexpr int kPriorities = 8;

struct Ends {
  std::optional<std::vector<int>> pfc;  // Absent: unknown.
  std::string why_no_pfc;
  std::optional<std::vector<int>> ecn;
};

std::string list_of(const std::vector<int>& priorities) {
  return priorities.empty() ? "off"
                            : fmt::format("on for priority {}", fmt::join(priorities, ", "));
}

// Shown by the RDMA drivers of DOCA (MLNX_OFED) only.
std::optional<std::vector<int>> ecn_priorities(Host& host, const std::string& interface) {
  const std::string folder = fmt::format("/sys/class/net/{}/ecn", interface);
  if (!config::read_line(host, folder + "/roce_np/enable/0")) return std::nullopt;
  std::vector<int> on;
  for (int i = 0; i < kPriorities; ++i)
    if (config::read_line(host, fmt::format("{}/roce_np/enable/{}", folder, i)) == "1" &&
        config::read_line(host, fmt::format("{}/roce_rp/enable/{}", folder, i)) == "1")
      on.push_back(i);
  return on;
}

Ends ends_of(Host& host, const std::string& interface) {
  Ends ends;
  ends.ecn = ecn_priorities(host, interface);
  if (!host.has_program("dcb")) {
    ends.why_no_pfc = "there is no dcb (of iproute2)";
    return ends;
  }
  const auto answer = host.run({"dcb", "pfc", "show", "dev", interface}, kDcbLimit);
  if (answer && answer->exit_status == 0) ends.pfc = lossless_priorities(answer->output);
  if (!ends.pfc) {
    const std::string output(config::trimmed(answer ? answer->output : std::string()));
    const std::string said = output.substr(0, output.find('\n'));
    ends.why_no_pfc = said.empty() ? "dcb printed nothing" : "dcb: " + said;
  }
  return ends;
}

config::Check judge(const Ends& ends, const config::Nic& nic, const std::string& interface) {
  const std::string pfc = ends.pfc ? "PFC is " + list_of(*ends.pfc)
                                   : fmt::format("PFC is unknown ({})", ends.why_no_pfc);
  const std::string ecn = ends.ecn ? "ECN is " + list_of(*ends.ecn) : "ECN is unknown";
  const std::string what =
      fmt::format("{}: {}, {}; a host can't see the switches' settings", interface, pfc, ecn);
  const bool is_kept = (ends.pfc && !ends.pfc->empty()) || (ends.ecn && !ends.ecn->empty());
  if (is_kept) return {"rdma_lossless", Severity::kGood, {nic.name, what, ""}};
  const bool is_known = ends.pfc && ends.ecn;
  const std::string mend =
      ends.pfc ? fmt::format(
                     "sudo dcb pfc set dev {} prio-pfc 3:on, the same at the switch, and "
                     "traffic_class to go with it; or ECN at the switch",
                     shell_word(interface))
               : fmt::format(
                     "mlnx_qos -i {} (NVIDIA's tools) shows it, the switch's ports must "
                     "agree; counters of lost packets: ethtool -S {}",
                     shell_word(interface), shell_word(interface));
  return {"rdma_lossless",
          Severity::kWarning,
          {nic.name,
           what + (is_known ? ": RoCE is slow where packets are lost"
                            : ": where neither is on, RoCE is slow where packets are lost"),
           mend}};
}

}  // namespace

// Parses "prio-pfc 0:off 1:off 2:off 3:on ...".
std::optional<std::vector<int>> lossless_priorities(std::string_view answer) {
  const auto words = config::words_of(answer);
  std::vector<int> on;
  bool is_told = false;
  bool is_here = false;
  for (const std::string_view word : words) {
    const auto colon = word.find(':');
    if (colon == std::string_view::npos) {
      is_here = word == "prio-pfc";
      is_told = is_told || is_here;
    } else if (is_here && word.substr(colon + 1) == "on") {
      on.push_back(static_cast<int>(config::leading_number(word)));
    }
  }
  if (!is_told) return std::nullopt;
  return on;
}

std::vector<config::Check> check_lossless(const config::Fabric& fabric, Host& host) {
  std::vector<config::Check> checks;
  for (const config::Nic& nic : fabric.nics) {
    if (nic.driver != config::NicDriver::kVerbs) continue;
    const config::RdmaPort port = config::read_rdma_port(host, nic.device, nic.device_port);
    // iWARP runs over TCP, which recovers lost packets.
    if (port.pci.empty() || port.kind == config::RdmaKind::kIwarp || port.is_infiniband ||
        port.interface.empty())
      continue;
    checks.push_back(judge(ends_of(host, port.interface), nic, port.interface));
  }
  return checks;
}

}  // namespace ztcp::setup
