// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What somebody said of a NIC's queue pairs: the config's word, else NCCL's own, else ours. What is
// not ours is noted with whose it is.
#pragma once

#include "config/settings.h"
#include "transport/verbs/device.h"
#include "transport/verbs/nccl_variables.h"

namespace ztcp::verbs {

void take_settings(Device& device, const config::Nic& nic, const NcclVariables& variables);
// Above what size pieces are told of apart; once it is known what network the device is on.
void take_threshold(Device& device, const config::Nic& nic, const NcclVariables& variables);

}  // namespace ztcp::verbs
