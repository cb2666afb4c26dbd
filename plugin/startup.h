// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The policy of init: which problems fail it, which only warn, and which devices are exposed when
// the config cannot be honoured ("Devices and processes" in docs/architecture.md).
//
//   no config             init fails; NCCL goes on without ztcp, or ends the job if NCCL_NET names
//                         ztcp, after a warning that says which, and how to set up
//   no config, but        uses the interfaces that NCCL's sockets would take, over the kernel's
//   ZTCP_TRANSPORT=       TCP: a user that asks for it by name is not slow unawares; with verbs the
//   sockets or verbs      RDMA devices that NCCL would take
//   config unusable here  init succeeds and shows devices, so that jobs inside one host run on;
//                         every connection is refused with the reason
//   a transport that      its NICs refuse in the same way, by name; other transports' NICs work
//   can't start
//   either, with          init fails, after a warning that all hosts must fall back together
//   ZTCP_ON_ERROR=fallback
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/environment.h"
#include "config/file/load.h"
#include "config/machine/cpu_share.h"
#include "core/result.h"
#include "plugin/net.h"

namespace ztcp::plugin {

// A transport, or a sentence for the operator.
using Created = Result<std::unique_ptr<Transport>, std::string>;
Created in_words(Result<std::unique_ptr<Transport>> made);

// A transport that this build contains.
struct TransportSource {
  TransportKind kind;
  // Whether this transport carries the NIC.
  bool (*carries)(const config::Nic& nic);
  // Whether NCCL opens more channels than collectives need when all NICs are of this transport
  // (ChannelTuner). Null: never.
  bool (*is_tunable)(const config::Fabric& fabric) = nullptr;
  // Number of NCCL devices that the NIC is exposed as, also where it cannot be used. Null: 1.
  int (*nccl_devices)(const config::Fabric& fabric, const config::Nic& nic) = nullptr;
  // Creates the transport over a fabric that has only NICs it carries, at least one. It has a
  // device for each, in their order, but one device for all that the config merges, in the place of
  // the first.
  std::function<Created(const config::Fabric&)> create;
  // Returns these settings with the NICs to use where the transport was asked for by name and the
  // config has none for it, or the reason why there is none. Null: needs a config.
  std::function<Result<config::Fabric, std::string>(config::Fabric)> find_nics;
};

// The product's transports (transports.cc), whose threads run on `cpus`; test modules define
// others.
std::vector<TransportSource> transport_sources(const std::shared_ptr<const config::CpuShare>& cpus);

// The functions of the rest of the library that start-up calls. Tests substitute their own.
struct StartupSources {
  std::function<config::LoadResult(const std::string& path)> load;
  std::function<config::Problems(const config::Fabric&)> check_host;
  std::vector<TransportSource> transports;
  // Makes the statistics page, before any transport starts. Null: there is none.
  std::function<void(const config::Fabric&, std::uint64_t config_hash)> open_page = nullptr;
  std::size_t collnet_workers = 0;  // In each group, where CollNet is on.
};

Told<Startup> start_up(const StartupSources& sources, const config::Environment& environment,
                       const std::string& host);

}  // namespace ztcp::plugin
