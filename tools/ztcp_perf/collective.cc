// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/collective.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "tools/ztcp_perf/failure.h"
#include "tools/ztcp_perf/plugin_log.h"
#include "tools/ztcp_perf/plugin_table.h"

namespace ztcp::perf {

Collective::Collective(const Options& options, int abi)
    : net_(load_collective(options.plugin, abi)),
      op_(options.op),
      rank_(*options.rank),
      ranks_(options.ranks) {
  const ncclResult_t result = net_->init(make_logger(*options.rank, options.log));
  if (result != ncclSuccess) fail("CollNet's init failed: {}", name_of(result));
  int devices = 0;
  if (net_->devices(&devices) != ncclSuccess || devices == 0)
    fail("--op {}: the plugin offers no CollNet; switch it on (ZTCP_COLLNET=1)", name_of(op_));
}

Collective::~Collective() {
  for (void* const mhandle : mhandles_)
    if (mhandle != nullptr) net_->dereg_mr(comm_, mhandle);
  if (comm_ != nullptr) net_->close(comm_);
  if (listener_ != nullptr) net_->close_listen(listener_);
  net_->finalize();
}

void Collective::open(int device, Bootstrap& bootstrap, std::span<std::byte> input,
                      std::span<std::byte> output) {
  input_ = input;
  output_ = output;
  Handle mine{};
  ncclResult_t result = net_->listen(device, mine.data(), &listener_);
  if (result != ncclSuccess)
    fail("CollNet's listen on device {} failed: {}", device, name_of(result));
  std::vector<Handle> all = bootstrap.all_gather_values(mine);
  std::vector<void*> handles;
  for (Handle& one : all) handles.push_back(one.data());
  result = bootstrap.beat_during([&] { return net_->connect(handles, rank_, listener_, &comm_); });
  if (result != ncclSuccess) fail("CollNet's connect failed: {}", name_of(result));
  net_->close_listen(std::exchange(listener_, nullptr));
  for (const auto& [memory, mhandle] :
       {std::pair{input_, &mhandles_[0]}, std::pair{output_, &mhandles_[1]}})
    if (result = net_->reg_mr(comm_, memory.data(), memory.size(), mhandle); result != ncclSuccess)
      fail("CollNet's regMr of {} bytes failed: {}", memory.size(), name_of(result));
}

void Collective::begin(std::size_t size_bytes) {
  size_bytes_ = size_bytes;
  pieces_ = (size_bytes + kStepBytes - 1) / kStepBytes;
  posted_ = done_ = 0;
}

std::size_t Collective::bytes_of(std::size_t piece) const {
  return std::min(kStepBytes, size_bytes_ - piece * kStepBytes);
}

ncclResult_t Collective::post(std::size_t piece, void** request) {
  const std::size_t offset = piece * kStepBytes;
  std::byte* const from = input_.data();
  std::byte* const to = output_.data();
  if (op_ == Op::kCollNet)
    return net_->iallreduce(comm_, from + offset, to + offset, bytes_of(piece) / sizeof(float),
                            mhandles_[0], mhandles_[1], request);
  CollectiveNet::Window window{.part_bytes = size_bytes_ / static_cast<std::size_t>(ranks_),
                               .offset = offset,
                               .bytes = bytes_of(piece)};
  // The first byte of this rank's part that lies in the window.
  const std::size_t own = std::max(offset, static_cast<std::size_t>(rank_) * window.part_bytes);
  const bool gathers = is_gather(op_);
  window.all = (gathers ? to : from) + offset;
  window.all_mhandle = mhandles_[gathers ? 1 : 0];
  window.own = (gathers ? from : to) + own;
  window.own_mhandle = mhandles_[gathers ? 0 : 1];
  return gathers ? net_->iallgather(comm_, window, request)
                 : net_->ireducescatter(comm_, window, request);
}

bool Collective::advance() {
  bool moved = false;
  if (posted_ < pieces_ && posted_ < done_ + kStepsInFlight) {
    void*& request = requests_[posted_ % kStepsInFlight];
    const ncclResult_t result = post(posted_, &request);
    if (result != ncclSuccess) fail("{} failed: {}", name_of(op_), name_of(result));
    moved = request != nullptr;
    posted_ += moved ? 1 : 0;
  }
  if (done_ < posted_) {
    int done = 0;
    int size = 0;
    const ncclResult_t result = net_->test(requests_[done_ % kStepsInFlight], &done, &size);
    if (result != ncclSuccess)
      fail("piece {} of {} failed: {}", done_, name_of(op_), name_of(result));
    if (done != 0) {
      if (static_cast<std::size_t>(size) != bytes_of(done_))
        fail("piece {} of {}: the plugin says {} bytes, {} were given", done_, name_of(op_), size,
             bytes_of(done_));
      ++done_;
      moved = true;
    }
  }
  return moved;
}

}  // namespace ztcp::perf
