// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What the control thread hears of devices and their ports. All of it under the lock.
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "transport/core/log.h"
#include "transport/verbs/control.h"

namespace ztcp::verbs {

void Control::on_device(OpenDevice& device) {
  ibv_async_event event{};
  for (errno = 0; device.api->get_async_event(device.context.get(), &event) == 0; errno = 0) {
    on_event(device, event);
    device.api->ack_async_event(&event);
  }
  if (errno != EAGAIN && errno != EINTR) on_device_gone(device, errno);
}

// EIO of one that was taken out of the machine. The kernel would go on telling of its descriptor.
void Control::on_device_gone(OpenDevice& device, int sys_errno) {
  unwatch(device.context->async_fd);
  log::warn(
      "{}: is gone ({}), and all connections over it fail; was it taken out, or its driver "
      "unloaded? dmesg tells; start the job again once it is back",
      device.name, std::strerror(sys_errno));
  lose_device(device, nullptr, fmt::format("{} is gone", device.name));
}

void Control::on_event(OpenDevice& device, const ibv_async_event& event) {
  const char* const words = device.api->event_type_str(event.event_type);
  const bool is_of_port =
      event.event_type == IBV_EVENT_PORT_ERR || event.event_type == IBV_EVENT_PORT_ACTIVE;
  for (const auto& rail : rails_) {
    if (rail->device.opened.get() != &device) continue;
    if (!is_of_port || event.element.port_num != rail->device.port) continue;
    const bool is_down = event.event_type == IBV_EVENT_PORT_ERR;
    rail->is_port_down.store(is_down, std::memory_order_relaxed);
    for (const auto& talk : talks_)
      if (talk->connection)
        with_connection(*talk, [&](Connection& connection) {
          is_down ? connection.lose(*rail, "its port is down")
                  : connection.hurry(*rail, clock_now());
          return Status();
        });
    if (is_down)
      log::warn(
          "{}: port {} of {} is down ({}): what is under way fails once the NIC has given up; plug "
          "the cable in, or look at the switch",
          rail->device.name, rail->device.port, device.name, words);
    else
      log::info("{}: port {} of {} is active again", rail->device.name, rail->device.port,
                device.name);
  }
  if (event.event_type == IBV_EVENT_DEVICE_FATAL)
    log::warn("{}: {}: all connections over it alone fail; look at dmesg for its driver's words",
              device.name, words);
  if (event.event_type == IBV_EVENT_DEVICE_FATAL || event.event_type == IBV_EVENT_CQ_ERR)
    lose_device(device, event.event_type == IBV_EVENT_CQ_ERR ? event.element.cq : nullptr,
                fmt::format("{} tells of a {}", device.name, words));
}

void Control::lose_device(OpenDevice& device, const ibv_cq* queue, const std::string& why) {
  for (const auto& talk : talks_) {
    // One that was refused just now may have no queue pairs.
    if (!talk->connection || talk->state == Talk::State::kGone) continue;
    bool is_lost = false;
    with_connection(*talk, [&](Connection& connection) {
      is_lost = !connection.lose(device, queue, why);
      return Status();
    });
    if (is_lost) talk->connection->hear(News::kDeviceLost, Errc::kNoDevice, why);
  }
}

}  // namespace ztcp::verbs
