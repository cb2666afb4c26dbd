// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/peer_check.h"

#include <variant>

#include <fmt/format.h>

namespace ztcp::plugin {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

tl::unexpected<Reported> report_poison(const Poison& poison) {
  const std::string host = poison.host.empty() ? "of the peer" : poison.host;
  if (poison.unshown)
    return report(Errc::kRefused,
                  "host {} listens on NCCL device {}, which it does not show (it shows {}): its "
                  "nccl_devices differs from that of another rank; set the same nccl_devices for "
                  "each NIC in every host's ztcp.conf",
                  host, poison.unshown->device, poison.unshown->shown);
  return report(Errc::kRefused,
                "host {} takes no connections: {}; its own warnings say more, run there: "
                "ztcp_setup --check",
                host, describe(poison.reason));
}

}  // namespace

Told<PeerHandle> read_peer(ConstHandleBytes handle) {
  using Peer = Told<PeerHandle>;
  return std::visit(
      Overloaded{
          [](const PeerHandle& peer) -> Peer { return peer; },
          [](const Poison& poison) -> Peer { return report_poison(poison); },
          [](const ForeignHandle& foreign) -> Peer {
            return report(Errc::kProtocol,
                          "the peer{}{} uses another network (NCCL's Socket or IB?): ztcp did not "
                          "start there; is it set up on that host? Run there: ztcp_setup --check",
                          foreign.peer.empty() ? "" : " at ", foreign.peer);
          },
          [](const OtherVersion& other) -> Peer {
            return report(Errc::kProtocol,
                          "the peer's ztcp speaks handle version {}, this one {}: install the "
                          "same release on all hosts",
                          other.version, kHandleVersion);
          },
          [](const UnknownKind& unknown) -> Peer {
            return report(Errc::kProtocol,
                          "the peer's handle is of kind {}, which this ztcp does not know: the "
                          "peer's is newer, or the handle was damaged on its way; install the same "
                          "release on all hosts",
                          unknown.kind);
          },
      },
      decode_handle(handle));
}

Told<void> check_agreement(const std::string& device, const Issuer& ours, const Issuer& theirs) {
  const std::string found =
      differences(ours.agreement, {ours.host}, theirs.agreement, {theirs.host});
  if (found.empty()) return {};
  return report(Errc::kProtocol, "connecting from {} failed: {}", device, found);
}

std::string explain_unshown(int device, std::size_t shown) {
  return fmt::format(
      "NCCL named device {}, and this rank shows {}: the nccl_devices of another rank differs; set "
      "the same nccl_devices for each NIC in every host's ztcp.conf",
      device, shown);
}

}  // namespace ztcp::plugin
