// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Makes this process's statistics page (transport/stats/) at start-up.
#pragma once

#include <cstdint>
#include <vector>

#include "config/settings.h"
#include "plugin/net.h"

namespace ztcp::plugin {

// Never fails: without a page the process runs on, and one log line says why there is none.
// `config_hash`: of the config's text; 0: no config.
void open_statistics_page(const config::Fabric& fabric, std::uint64_t config_hash);

// A communicator has ended: one log line names the peers whose messages took much longer than those
// of the others, if there are such.
void report_stragglers(std::uint64_t communicator);

// Lists the devices, with NCCL's numbers. Does nothing without a page.
void list_devices(const std::vector<Device>& devices);
// Lists a device that NCCL has merged of others, if it is not listed yet.
void list_merged_device(const Device& device);

}  // namespace ztcp::plugin
