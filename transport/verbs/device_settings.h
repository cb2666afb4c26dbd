// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The settings of a NIC's queue pairs: the config's value, else NCCL's, else our default. Values
// other than the default are listed with their source.
#pragma once

#include "config/settings.h"
#include "transport/verbs/device.h"
#include "transport/verbs/nccl_variables.h"

namespace ztcp::verbs {

void take_settings(Device& device, const config::Nic& nic, const NcclVariables& variables);
// Sets the size above which pieces are notified separately. The kind of the device's network must
// be known.
void take_threshold(Device& device, const config::Nic& nic, const NcclVariables& variables);

}  // namespace ztcp::verbs
