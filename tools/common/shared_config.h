// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The part of a config that all hosts of a fleet share. Pure.
#pragma once

#include <string>

#include "config/settings.h"

namespace ztcp::tools {

// A text that is equal on hosts whose configs differ only in names, addresses and places of this
// host's own: a hash, which tells nothing about the cluster key.
std::string shared_hash(config::Fabric fabric);
// The first 12 hexadecimal digits of the SHA-256 of a text.
std::string short_hash(const std::string& text);

}  // namespace ztcp::tools
