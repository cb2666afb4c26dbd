// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

#include "tests/support/verbs/fake_calls.h"

namespace ztcp::test {
namespace {
bool is_of_pair(ibv_event_type type) {
  return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
         type == IBV_EVENT_QP_ACCESS_ERR || type == IBV_EVENT_COMM_EST ||
         type == IBV_EVENT_SQ_DRAINED || type == IBV_EVENT_QP_LAST_WQE_REACHED;
}
}  // namespace

ibv_device** FakeCalls::get_device_list(int* count) {
  const Lock lock(the_fabric->mutex_);
  const auto& devices = the_fabric->devices_;
  auto** const list = new ibv_device*[devices.size() + 1];
  std::transform(devices.begin(), devices.end(), list,
                 [](const auto& one) -> ibv_device* { return one.get(); });
  list[devices.size()] = nullptr;
  *count = static_cast<int>(devices.size());
  return list;
}

void FakeCalls::free_device_list(ibv_device** list) { delete[] list; }

ibv_context* FakeCalls::open_device(ibv_device* device) {
  auto* const fake = static_cast<FakeDevice*>(device);
  if (!fake->spec.may_open) return errno = fake->spec.open_errno, nullptr;
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return nullptr;
  auto* const context = new FakeContext{};
  context->device = device;
  context->fake = fake;
  context->fabric = the_fabric;
  context->async_fd = ends[0];
  context->event_pipe = ends[1];
  context->cmd_fd = -1;
  context->ops.post_send = post_send;
  context->ops.post_recv = post_recv;
  context->ops.poll_cq = poll_cq;
  const Lock lock(the_fabric->mutex_);
  the_fabric->contexts_.push_back(context);
  ++the_fabric->live_["context"];
  return context;
}

int FakeCalls::close_device(ibv_context* context) {
  auto* const fake = static_cast<FakeContext*>(context);
  FakeFabric& fabric = fabric_of(context);
  const Lock lock(fabric.mutex_);
  std::erase(fabric.contexts_, fake);
  --fabric.live_["context"];
  close(fake->async_fd);
  close(fake->event_pipe);
  delete fake;
  return 0;
}

int FakeCalls::query_device(ibv_context* context, ibv_device_attr* out) {
  const FakeDeviceSpec& spec = static_cast<FakeContext*>(context)->fake->spec;
  *out = {};
  out->max_qp_wr = spec.max_qp_wr;
  out->max_cqe = spec.max_cqe;
  out->max_mr_size = spec.max_mr_bytes;
  out->max_sge = static_cast<int>(spec.max_sge);
  out->max_qp_rd_atom = spec.max_reads;
  out->max_qp_init_rd_atom = spec.max_reads;
  out->node_guid = 0x5a00 + spec.name.size();
  out->phys_port_cnt = static_cast<std::uint8_t>(spec.ports.size());
  return 0;
}

int FakeCalls::query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* out) {
  FakeFabric& fabric = fabric_of(context);
  const Lock lock(fabric.mutex_);
  const auto& ports = static_cast<FakeContext*>(context)->fake->spec.ports;
  if (port == 0 || port > ports.size()) return refuse(EINVAL);
  const FakePort& one = ports[port - 1U];
  *out = {};
  out->state = one.state;
  out->active_mtu = one.mtu;
  out->max_mtu = IBV_MTU_4096;
  out->lid = one.lid;
  out->link_layer = one.link_layer;
  out->active_width = one.width;
  out->active_speed = one.speed;
  out->gid_tbl_len = static_cast<int>(one.gids.size());
  out->max_msg_sz = 1U << 31U;
  return 0;
}

int FakeCalls::query_port_speed(ibv_context* context, std::uint32_t port, std::uint64_t* out) {
  const Lock lock(fabric_of(context).mutex_);
  *out = static_cast<FakeContext*>(context)->fake->spec.ports.at(port - 1U).speed_100mbps;
  return *out == 0 ? EOPNOTSUPP : 0;
}

int FakeCalls::query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* out) {
  const Lock lock(fabric_of(context).mutex_);
  const auto& ports = static_cast<FakeContext*>(context)->fake->spec.ports;
  if (port == 0 || port > ports.size()) return refuse(EINVAL);
  const auto& gids = ports[port - 1U].gids;
  if (index < 0 || static_cast<std::size_t>(index) >= gids.size()) return refuse(EINVAL);
  *out = gids[static_cast<std::size_t>(index)];
  return 0;
}

int FakeCalls::get_async_event(ibv_context* context, ibv_async_event* out) {
  while (read(context->async_fd, out, sizeof *out) == sizeof *out) {
    FakeFabric& fabric = fabric_of(context);
    const Lock lock(fabric.mutex_);
    if (out->event_type == IBV_EVENT_CQ_ERR) {
      ++static_cast<FakeCompletionQueue*>(out->element.cq)->events_told;
    } else if (is_of_pair(out->event_type)) {
      // A queue pair's unread events go with it (uverbs_std_types_qp.c).
      const bool is_there =
          std::any_of(fabric.queue_pairs_.begin(), fabric.queue_pairs_.end(),
                      [&](const auto& one) { return one.second == out->element.qp; });
      if (!is_there) continue;
      ++static_cast<FakeQueuePair*>(out->element.qp)->events_told;
    }
    return 0;
  }
  return -1;
}

// libibverbs/device.c: acknowledged events are counted per object.
void FakeCalls::ack_async_event(ibv_async_event* event) {
  const Lock lock(the_fabric->mutex_);
  if (event->event_type == IBV_EVENT_CQ_ERR)
    ++static_cast<FakeCompletionQueue*>(event->element.cq)->events_acked;
  else if (is_of_pair(event->event_type))
    ++static_cast<FakeQueuePair*>(event->element.qp)->events_acked;
}

const char* FakeCalls::event_type_str(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_DEVICE_FATAL:
      return "local catastrophic error";
    case IBV_EVENT_PORT_ERR:
      return "port error";
    case IBV_EVENT_PORT_ACTIVE:
      return "port active";
    case IBV_EVENT_GID_CHANGE:
      return "GID table change";
    case IBV_EVENT_LID_CHANGE:
      return "LID change";
    case IBV_EVENT_PKEY_CHANGE:
      return "P_Key table change";
    case IBV_EVENT_CQ_ERR:
      return "CQ error";
    case IBV_EVENT_QP_FATAL:
      return "local work queue catastrophic error";
    default:
      return "another event";
  }
}

}  // namespace ztcp::test
