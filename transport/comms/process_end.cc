// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/process_end.h"

#include <cstddef>
#include <ctime>

namespace ztcp::comms {

void say_last_words(Poller& poller, TimePoint ends) {
  constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 100'000};
  const auto is_over = [ends] { return Poller::read_clock() >= ends; };
  const auto tell_all = [&](auto&& tell) {
    poller.with_backend_unless(is_over, [&](TimePoint now) {
      poller.backend().clients().for_each([&](Client& client) { tell(client, now); });
    });
  };
  // Runs a turn before the goodbye, which acknowledges the bytes received so far.
  poller.with_backend_unless(is_over, [](TimePoint) {});
  tell_all([](Client& client, TimePoint now) { client.say_goodbye(now); });
  std::size_t unfinished = 0;
  const auto count = [&](TimePoint) { unfinished = poller.backend().unfinished(); };
  while (poller.with_backend_unless(is_over, count) && unfinished != 0 && !poller.is_lost() &&
         !is_over()) {
    nanosleep(&kPause, nullptr);
  }
  poller.with_backend_unless(is_over, [&](TimePoint) { poller.say_counts("the process ends"); });
  tell_all([](Client& client, TimePoint) { client.cut_off(); });
}

}  // namespace ztcp::comms
