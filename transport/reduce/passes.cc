// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/reduce/passes.h"

#include <algorithm>
#include <span>

#include "transport/reduce/block_float.h"
#include "transport/reduce/block_kernels.h"
#include "transport/reduce/kernels.h"

namespace ztcp::reduce {
namespace {

// The steps of a rounded sum follow each other while its elements are in the first cache.
constexpr std::size_t kCachedElements = 2048;
static_assert(kCachedElements % kBlockElements == 0 && Passes::kTaskElements % kBlockElements == 0,
              "each thread has blocks of its own");

void narrow(const Pass& pass, Range range) {
  if (pass.form == Wire::kFloat8) return narrow_to_blocks(pass.type, pass.wire, pass.values, range);
  narrow_to_bfloat16(pass.wire, pass.values, range);
}

void widen(const Pass& pass, Range range) {
  const std::byte* const wire = pass.wire;
  if (pass.form == Wire::kFloat8) return sum_of_blocks(pass.type, pass.to, {&wire, 1}, range);
  widen_from_bfloat16(pass.to, wire, range);
}

void sum(const Pass& pass, std::span<const std::byte* const> sources) {
  if (pass.form == Wire::kFloat8) return sum_of_blocks(pass.type, pass.to, sources, pass.elements);
  sum_bfloat16_as_float(pass.to, sources, pass.elements);
}

void sum_rounded(const Pass& pass, std::span<const std::byte* const> sources) {
  const std::size_t end = pass.elements.begin + pass.elements.count;
  for (std::size_t at = pass.elements.begin; at < end; at += kCachedElements) {
    const Range range{at, std::min(kCachedElements, end - at)};
    narrow(pass, range);
    if (pass.form == Wire::kFloat8)
      sum_blocks(pass.wire, sources, range);
    else
      combine(ElementType::kBfloat16, Reduction::kSum, pass.wire, sources, range);
    widen(pass, range);
  }
}

// Apart, so that a pass that rounds nothing does not save registers for it.
[[gnu::noinline]] void do_rounding_pass(const Pass& pass) {
  const std::span sources(pass.sources, pass.source_count);
  if (pass.kind == Pass::Kind::kNarrow) return narrow(pass, pass.elements);
  if (pass.kind == Pass::Kind::kWiden) return widen(pass, pass.elements);
  if (pass.kind == Pass::Kind::kSum) return sum(pass, sources);
  sum_rounded(pass, sources);
}

}  // namespace

void do_pass(const Pass& pass) {
  if (pass.kind != Pass::Kind::kCombine) return do_rounding_pass(pass);
  combine(pass.type, pass.reduction, pass.to, {pass.sources, pass.source_count}, pass.elements);
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
