// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The transports of this build.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/machine/cpu_share.h"
#include "core/local_addresses.h"
#include "plugin/gpu_identity.h"
#include "plugin/startup.h"
#include "transport/sockets/kernel/device_list.h"
#include "transport/sockets/socket_transport.h"
#include "transport/ustack/nic_config.h"
#include "transport/ustack/ustack_transport.h"
#include "transport/verbs/device_list.h"
#include "transport/verbs/library.h"
#include "transport/verbs/port_choice.h"
#include "transport/verbs/verbs_transport.h"

namespace ztcp::plugin {
namespace {

Created create_sockets(const config::Fabric& fabric, const config::CpuShare& cpus) {
  auto devices = sockets::devices_of(fabric, local_addresses());
  if (!devices) return tl::unexpected(explain(devices.error()));
  return in_words(sockets::create(fabric, std::move(*devices), cpus));
}

// Opened once, so that a warning about NCCL_IBVERBS_LIB appears once.
const Result<const verbs::Api*, std::string>& libibverbs(const verbs::NcclVariables& variables) {
  static const auto& opened = *new auto(verbs::open_library_for(variables));
  return opened;
}

Created create_verbs(const config::Fabric& fabric) {
  const bool has_rdma =
      std::any_of(fabric.nics.begin(), fabric.nics.end(),
                  [](const config::Nic& nic) { return nic.driver == config::NicDriver::kVerbs; });
  const verbs::NcclVariables variables = verbs::read_nccl_variables();
  const auto api = has_rdma ? libibverbs(variables)
                            : tl::unexpected(std::string("no NIC in the config uses RDMA"));
  const std::vector<LocalAddress> all = local_addresses();
  std::vector<verbs::Device> devices =
      api ? verbs::devices_of(**api, fabric, variables, all)
          : verbs::devices_without_library(api.error(), fabric, variables, all);
  if (!api && devices.empty()) return tl::unexpected(api.error());
  for (const std::string& ignored : variables.ignored)
    log::warn("{} is not a valid value and is ignored: correct or unset it", ignored);
  for (const std::string& unheeded : variables.unheeded)
    log::warn("{}; unset it: ztcp does not read it", unheeded);
  return in_words(verbs::create(fabric, std::move(devices)));
}

Result<config::Fabric, std::string> find_interfaces(config::Fabric settings) {
  return sockets::fabric_of(std::move(settings), sockets::interface_request(), local_addresses());
}

// Queue pairs are negotiated over the interface that NCCL's own sockets would take first.
Result<config::Fabric, std::string> find_rdma_devices(config::Fabric settings) {
  const verbs::NcclVariables variables = verbs::read_nccl_variables();
  const auto& api = libibverbs(variables);
  ZTCP_CHECK(api);
  const std::vector<LocalAddress> all = local_addresses();
  const auto choice = sockets::choose_interfaces(sockets::interface_request(), all);
  if (choice.taken.empty())
    return tl::unexpected("no interface that is up fits " + choice.by +
                          ", and queue pairs are negotiated over one");
  return verbs::fabric_of(**api, std::move(settings), variables, choice.taken.front());
}

}  // namespace

std::vector<TransportSource> transport_sources(
    const std::shared_ptr<const config::CpuShare>& cpus) {
  return {{.kind = TransportKind::kUstack,
           .carries = ustack::carries,
           .is_tunable = ustack::is_shown_often,
           .nccl_devices =
               [](const config::Fabric& fabric, const config::Nic& nic) {
                 return ustack::nccl_devices(fabric, nic, fabric.tunes_channels);
               },
           .create =
               [cpus](const config::Fabric& fabric) {
                 return in_words(ustack::create(fabric, *cpus, probe_gpus));
               },
           .find_nics = nullptr},
          {.kind = TransportKind::kSockets,
           .carries = sockets::carries,
           .is_tunable = [](const config::Fabric&) { return true; },
           .nccl_devices = sockets::nccl_devices,
           .create = [cpus](const config::Fabric& fabric) { return create_sockets(fabric, *cpus); },
           .find_nics = find_interfaces},
          {.kind = TransportKind::kVerbs,
           .carries = verbs::carries,
           .create = create_verbs,
           .find_nics = find_rdma_devices}};
}

}  // namespace ztcp::plugin
