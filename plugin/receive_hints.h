// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whether NCCL's hints on a receive, or their absence, tell that the GPU does not poll its buffer.
#pragma once

namespace ztcp::plugin {

// The value of NCCL_NET_OPTIONAL_RECV_COMPLETION at start-up; true until then.
void remember_receive_hints(bool are_on) noexcept;
bool receive_hints_are_on() noexcept;

}  // namespace ztcp::plugin
