// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The only list of the kinds of resources: meson.build takes the sources from the headers included
// here.
#pragma once

#include <variant>

#include "tools/ztcp_setup/resources/access.h"
#include "tools/ztcp_setup/resources/boot_arguments.h"
#include "tools/ztcp_setup/resources/command_line_file.h"
#include "tools/ztcp_setup/resources/driver.h"
#include "tools/ztcp_setup/resources/file.h"
#include "tools/ztcp_setup/resources/folder.h"
#include "tools/ztcp_setup/resources/module.h"
#include "tools/ztcp_setup/resources/mount.h"
#include "tools/ztcp_setup/resources/notice.h"
#include "tools/ztcp_setup/resources/reserved_ports.h"
#include "tools/ztcp_setup/resources/unit.h"
#include "tools/ztcp_setup/resources/value.h"
#include "tools/ztcp_setup/resources/xdp_program.h"

namespace ztcp::setup {

template <Kind... Each>
struct KindList {
  using What = std::variant<Each...>;
  using Before = std::variant<typename Each::Before...>;
};

using Kinds = KindList<resource::File, resource::Folder, resource::Value, resource::Module,
                       resource::Mount, resource::Driver, resource::Access, resource::Unit,
                       resource::BootArguments, resource::CommandLineFile, resource::ReservedPorts,
                       resource::XdpProgram, resource::Notice>;

}  // namespace ztcp::setup
