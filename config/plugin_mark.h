// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A text that is stored in one piece in our libnccl-net.so, so that ztcp_setup --check tells it
// from other plugins of that name. (The optimiser splits other strings.)
#pragma once

namespace ztcp::config {

inline constexpr char kPluginMark[] = "this libnccl-net.so is ztcp's";

}  // namespace ztcp::config
