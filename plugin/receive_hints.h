// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whether NCCL's word of a receive, or its silence, says that nobody polls its buffer.
#pragma once

namespace ztcp::plugin {

// NCCL_NET_OPTIONAL_RECV_COMPLETION as it was at start-up; until then yes.
void remember_receive_hints(bool are_on) noexcept;
bool receive_hints_are_on() noexcept;

}  // namespace ztcp::plugin
