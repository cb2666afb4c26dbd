// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Events of devices and their ports, as the control thread receives them. All of it under the lock.
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "core/log.h"
#include "transport/verbs/control_thread.h"

namespace ztcp::verbs {
namespace {

// Read before the event is acknowledged: until then the object exists.
FailedPart part_of(const ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_CQ_ERR:
      return {.at = event.element.cq};
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      return {.at = event.element.qp, .number = event.element.qp->qp_num};
    default:
      return {};
  }
}

}  // namespace

void ControlThread::on_device(OpenDevice& device) {
  ibv_async_event event{};
  for (errno = 0; device.api->get_async_event(device.context.get(), &event) == 0; errno = 0) {
    const FailedPart part = part_of(event);
    // Acknowledge first: the library destroys a queue pair or completion queue only once its events
    // are acknowledged, and on_event(), or a thread of NCCL's meanwhile, destroys it.
    ibv_async_event acknowledged = event;
    device.api->ack_async_event(&acknowledged);
    on_event(device, event, part);
  }
  if (errno != EAGAIN && errno != EINTR) on_device_gone(device, errno);
}

// A device that was removed from the machine returns EIO, and its descriptor would stay readable
// for ever.
void ControlThread::on_device_gone(OpenDevice& device, int sys_errno) {
  unwatch(device.context->async_fd);
  log::warn(
      "{}: is gone ({}), and all connections over it fail; was it taken out, or its driver "
      "unloaded? dmesg tells; start the job again once it is back",
      device.name, std::strerror(sys_errno));
  lose_device(device, {}, fmt::format("{} is gone", device.name));
}

void ControlThread::on_event(OpenDevice& device, const ibv_async_event& event,
                             const FailedPart& part) {
  const char* const words = device.api->event_type_str(event.event_type);
  const std::string told = fmt::format("{} tells of a {}", device.name, words);
  switch (event.event_type) {
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
      for (const auto& rail : rails_)
        if (rail->device.opened.get() == &device && event.element.port_num == rail->device.port)
          on_port(*rail, event, words);
      return;
    case IBV_EVENT_DEVICE_FATAL:
      log::warn("{}: {}: all connections over it alone fail; look at dmesg for its driver's words",
                device.name, words);
      return lose_device(device, {}, told);
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      return lose_device(device, part, told);
    // The first may precede the last message of a handshake; the others concern objects that we do
    // not use.
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return;
    default:
      log::info("{}; no connection is lost by that alone", told);
  }
}

void ControlThread::on_port(Rail& rail, const ibv_async_event& event, const char* words) {
  const Device& device = rail.device;
  if (event.event_type == IBV_EVENT_PKEY_CHANGE)
    return log::warn(
        "{}: the partition keys of {} have changed ({}): connections of another partition fail; "
        "is pkey_index = {} still right?",
        device.name, device.place(), words, device.pkey_index);
  if (event.event_type != IBV_EVENT_PORT_ERR) check_address(rail, words);
  if (event.event_type != IBV_EVENT_PORT_ERR && event.event_type != IBV_EVENT_PORT_ACTIVE) return;
  const bool is_down = event.event_type == IBV_EVENT_PORT_ERR;
  rail.is_port_down.store(is_down, std::memory_order_relaxed);
  refresh_soon();
  for (const auto& control : controls_)
    if (control->connection)
      with_recovery(*control, [&](Recovery& recovery) {
        is_down ? recovery.lose(rail, "its port is down") : recovery.offer_soon(rail, clock_now());
        return Status();
      });
  if (is_down)
    log::warn(
        "{}: port {} of {} is down ({}): work in flight fails once the NIC has given up; plug "
        "the cable in, or look at the switch",
        device.name, device.port, device.opened->name, words);
  else
    log::info("{}: port {} of {} is active again", device.name, device.port, device.opened->name);
}

// Existing queue pairs keep the address with which they were joined.
void ControlThread::check_address(Rail& rail, const char* words) {
  const Device& device = rail.device;
  if (device.is_iwarp) return;
  const PortAddress was = rail.address();
  const auto now =
      read_address_again(*device.opened, device.port, device.gid_rule, device.address.gid);
  if (!now)
    return log::warn("{}: after a {}: {}; new connections fail until it is back", device.name,
                     words, now.error());
  if (*now == was) return;
  rail.move_to(*now);
  if (now->gid.gid != was.gid.gid)
    log::warn(
        "{}: GID {} of {} is gone ({}); new connections use {}, and those that there are may fail",
        device.name, to_string(was.gid.gid), device.place(), words, describe(now->gid));
  else if (now->lid != was.lid)
    log::warn("{}: {} has LID {} now, and had {} ({}); connections that there are may fail",
              device.name, device.place(), now->lid, was.lid, words);
  else
    log::info("{}: GID {} of {} is at index {} now", device.name, to_string(was.gid.gid),
              device.place(), now->gid.index);
}

void ControlThread::check_for_dead(const RailSet& rails) {
  const std::lock_guard lock(mutex_);
  for (const auto& rail : rails.rails)
    if (rail->is_dead())
      lose_device(*rail->device.opened, {},
                  fmt::format("{} takes no command any more", rail->device.opened->name));
  wake();  // The next deadline may have changed.
}

void ControlThread::lose_device(OpenDevice& device, const FailedPart& part,
                                const std::string& why) {
  if (part.at == nullptr) device.is_dead = true;
  refresh_soon();
  const Errc code = part.at == nullptr ? Errc::kNoDevice : Errc::kSystem;
  for (const auto& control : controls_) {
    // A connection that was just refused may have no queue pairs.
    if (!control->connection || control->state == ControlConnection::State::kGone) continue;
    bool is_lost = false;
    with_recovery(*control, [&](Recovery& recovery) {
      is_lost = !recovery.lose(device, part, why);
      return Status();
    });
    if (is_lost) control->connection->peer_status().report(PeerEvent::kDeviceLost, code, why);
  }
}

}  // namespace ztcp::verbs
