// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/host_name.h"

#include <unistd.h>

namespace ztcp {

HostName own_host_name() {
  std::array<char, HostName::kBytes> text{};
  if (::gethostname(text.data(), text.size() - 1) != 0) return {};
  return HostName::of(text.data());
}

}  // namespace ztcp
