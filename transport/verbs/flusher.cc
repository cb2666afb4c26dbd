// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/flusher.h"

#include <array>

namespace ztcp::verbs {

Made<Flusher> Flusher::create(Connection& connection, std::size_t index) {
  const Strand& on = connection.strands()[index];
  auto queues =
      QueuePairs::create(on.rail->device, on.rail->address(), {.count = 1, .receive_depth = 1});
  if (!queues) return tl::unexpected(std::move(queues.error()));
  RailFacts itself;
  (*queues)->tell(itself);
  if (auto joined = (*queues)->join(itself); !joined)
    return tl::unexpected(std::move(joined.error()));
  return Flusher(&connection.memory().flushed, on.region->lkey, std::move(*queues));
}

Result<std::uint64_t> Flusher::begin(const std::byte* from, std::uint32_t rkey) {
  ZTCP_CHECK(queues_->post_read(into_, lkey_, from, rkey, next_));
  return next_++;
}

Result<bool> Flusher::is_done(std::uint64_t id) {
  std::array<ibv_wc, 8> completions;
  const int count = id < done_ ? 0 : queues_->poll(completions);
  if (count < 0) return fail(Errc::kNoDevice, "ibv_poll_cq", -count);
  for (int i = 0; i < count; ++i) {
    const ibv_wc& completion = completions[static_cast<std::size_t>(i)];
    status_ = completion.status;
    if (status_ != IBV_WC_SUCCESS) return fail(Errc::kSystem, "flush");
    done_ = completion.wr_id + 1;
  }
  return id < done_;
}

}  // namespace ztcp::verbs
