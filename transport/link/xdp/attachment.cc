// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/xdp/attachment.h"

#include <cerrno>
#include <cstring>
#include <linux/if_link.h>
#include <utility>

#include <fmt/format.h>

#include "core/log.h"
#include "transport/link/xdp/bpf.h"

namespace ztcp::link::xdp {
namespace {

// The name is missing where this user may not ask for it.
std::string describe_other(std::uint32_t id) {
  const auto facts = describe_program(id);
  return facts && !facts->name.empty() ? fmt::format("{} (id {})", facts->name, id)
                                       : fmt::format("id {}", id);
}

tl::unexpected<Error> tell_failure(const InterfaceFacts& interface, const Error& error) {
  const char* advice = "see dmesg, and whether the kernel was built with CONFIG_XDP_SOCKETS";
  if (error.sys_errno == EPERM || error.sys_errno == EACCES)
    advice =
        "a process that attaches the XDP program itself needs CAP_BPF, CAP_NET_ADMIN and "
        "CAP_NET_RAW";
  else if (error.sys_errno == EBUSY || error.sys_errno == EEXIST)
    advice = "another XDP program came onto it: remove that one";
  log::warn("xdp {}: {} failed: {}; {}", interface.name, error.where,
            std::strerror(error.sys_errno), advice);
  return tl::unexpected(error);
}

}  // namespace

Result<Attachment> attach(const InterfaceFacts& interface, const Steering& steering,
                          std::uint32_t queues, bool may_be_native) {
  if (interface.program_id != 0) {
    log::warn(
        "xdp {}: the XDP program {} is on this interface already; remove it (ip link set {} xdp "
        "off, or end the process that attached it), or choose another interface",
        interface.name, describe_other(interface.program_id), interface.name);
    return fail(Errc::kBusy, "attach XDP program", EBUSY);
  }
  Attachment out;
  const auto try_to = [&]() -> Status {
    out.map = ZTCP_TRY(make_socket_map(queues));
    out.program = ZTCP_TRY(load_program(assemble(steering, out.map.get())));
    out.program_id = ZTCP_TRY(describe_program(out.program)).id;
    Result<Fd> link = may_be_native
                          ? attach_program(out.program, interface.index, XDP_FLAGS_DRV_MODE)
                          : fail(Errc::kSystem, "not wanted", ECANCELED);
    out.is_native = link.has_value();
    if (!link) {
      out.native_errno = link.error().sys_errno;
      link = attach_program(out.program, interface.index, XDP_FLAGS_SKB_MODE);
    }
    out.link = ZTCP_TRY(std::move(link));
    return {};
  };
  if (const Status done = try_to(); !done) return tell_failure(interface, done.error());
  return out;
}

}  // namespace ztcp::link::xdp
