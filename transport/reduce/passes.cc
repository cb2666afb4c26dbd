// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/reduce/passes.h"

#include <algorithm>
#include <span>

#include "transport/reduce/kernels.h"

namespace ztcp::reduce {
namespace {

// The steps of a rounded sum follow each other while its elements are in the first cache.
constexpr std::size_t kCachedElements = 2048;

void sum_rounded(const Pass& pass, std::span<const std::byte* const> sources) {
  const std::size_t end = pass.elements.begin + pass.elements.count;
  for (std::size_t at = pass.elements.begin; at < end; at += kCachedElements) {
    const Range range{at, std::min(kCachedElements, end - at)};
    narrow_to_bfloat16(pass.wire, pass.values, range);
    combine(ElementType::kBfloat16, Reduction::kSum, pass.wire, sources, range);
    widen_from_bfloat16(pass.to, pass.wire, range);
  }
}

}  // namespace

void do_pass(const Pass& pass) {
  const std::span sources(pass.sources, pass.source_count);
  switch (pass.kind) {
    case Pass::Kind::kNarrow:
      return narrow_to_bfloat16(pass.wire, pass.values, pass.elements);
    case Pass::Kind::kWiden:
      return widen_from_bfloat16(pass.to, pass.wire, pass.elements);
    case Pass::Kind::kCombine:
      return combine(pass.type, pass.reduction, pass.to, sources, pass.elements);
    case Pass::Kind::kSumAsFloat:
      return sum_bfloat16_as_float(pass.to, sources, pass.elements);
    case Pass::Kind::kSumRounded:
      return sum_rounded(pass, sources);
  }
}

// The giver does a pass at once, before it looks for messages again, if it would do all of it in
// the end.
std::uint32_t Passes::give(Pass pass) {
  const bool is_alone = workers_ == nullptr || workers_->count() == 0;
  if (is_alone || (pass.elements.count <= kTaskElements && queue_.waiting() == 0)) {
    do_pass(pass);
    return 0;
  }
  std::uint32_t tasks = 0;
  const std::size_t end = pass.elements.begin + pass.elements.count;
  for (std::size_t at = pass.elements.begin; at < end; at += kTaskElements) {
    pass.elements = {at, std::min(kTaskElements, end - at)};
    if (!queue_.has_room()) {
      do_pass(pass);
      continue;
    }
    queue_.give(pass);
    ++tasks;
  }
  return tasks;
}

// To wake a worker takes as long as a few tasks.
void Passes::publish() {
  if (workers_ == nullptr) return;
  const std::size_t wanted = std::min(workers_->count(), queue_.waiting() / kTasksOfWaking);
  for (std::size_t worker = 0; worker < wanted; ++worker) workers_->wake(worker);
}

}  // namespace ztcp::reduce
