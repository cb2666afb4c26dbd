// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The policy of init: what is loud, what is soft, and what NCCL is shown when the config can't be
// honoured ("Devices and processes" in docs/architecture.md).
//
//   no config             init fails; NCCL goes on without us, or ends the job if NCCL_NET names
//                         us, after a warning that says which, and how to set up
//   no config, but        the interfaces that NCCL's sockets would take, over the kernel's TCP: who
//   ZTCP_TRANSPORT=       has asked for that by name is not slow unawares; with verbs the RDMA
//   sockets or verbs      devices that NCCL would take
//   config unusable here  init succeeds and shows devices, so that jobs inside one host run on;
//                         every connection is refused with the reason
//   a transport that      its NICs refuse in the same way, by name; those of the others serve
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
#include "plugin/net.h"

namespace ztcp::plugin {

// A transport, or a sentence for the operator.
using Created = tl::expected<std::unique_ptr<Transport>, std::string>;
Created in_words(Result<std::unique_ptr<Transport>> made);

// A way to carry bytes that this build has.
struct TransportSource {
  TransportKind kind;
  // Whether it is the one for such a NIC.
  bool (*carries)(const config::Nic& nic);
  // Whether NCCL opens more channels over such NICs alone than collectives are good for
  // (ChannelTuner). Null: never.
  bool (*is_tunable)(const config::Fabric& fabric) = nullptr;
  // Over a fabric with such NICs alone, at least one: a device for each, in their order, but one
  // for all that the config merges, where the first of them stands.
  std::function<Created(const config::Fabric&)> create;
  // These settings with the NICs that are had where it was asked for by name and the config has
  // none, or why there is none. Null: it needs a config.
  std::function<tl::expected<config::Fabric, std::string>(config::Fabric)> find_nics;
};

// Those of the product (transports.cc); the modules of tests have others.
std::vector<TransportSource> transport_sources();

// What start-up asks the rest of the library for. Tests answer instead.
struct StartupSources {
  std::function<config::LoadResult(const std::string& path)> load;
  std::function<config::Problems(const config::Fabric&)> check_host;
  std::vector<TransportSource> transports;
};

Told<Startup> start_up(const StartupSources& sources, const config::Environment& environment,
                       const std::string& host);

}  // namespace ztcp::plugin
