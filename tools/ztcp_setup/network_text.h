// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Messages of the kernel as commands that a person would type: they say what could not be put back
// and how, and tell whether something is there already.
#pragma once

#include <string>

struct nlmsghdr;

namespace ztcp::setup {

std::string address_command(const nlmsghdr& message, const std::string& link);
std::string neighbour_command(const nlmsghdr& message, const std::string& link);
std::string route_command(const nlmsghdr& message);

}  // namespace ztcp::setup
