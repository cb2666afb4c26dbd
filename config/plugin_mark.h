// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A text that stands in our libnccl-net.so as a whole, so that ztcp_setup --check tells it from
// other plugins of that name. (The optimiser cuts other strings up.)
#pragma once

namespace ztcp::config {

inline constexpr char kPluginMark[] = "this libnccl-net.so is ztcp's";

}  // namespace ztcp::config
