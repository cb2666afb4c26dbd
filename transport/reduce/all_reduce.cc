// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/reduce/all_reduce.h"

#include <algorithm>

#include "transport/reduce/block_float.h"
#include "transport/reduce/block_kernels.h"

namespace ztcp::reduce {
namespace {

// A vector up to this size, times the hosts that it is sent to, is exchanged whole and saves a hop.
// Between two hosts the hop costs no further bytes, only time to reduce.
constexpr std::size_t kWholeBytes = 64 << 10U;
constexpr std::size_t kWholeBytesOfTwo = 256 << 10U;
constexpr std::size_t kBfloat16Bytes = 2;
// A segment of an all-gather needs no scratch memory, so a window of NCCL's is one segment.
constexpr std::size_t kGatheredBytes = 4 << 20U;

std::size_t wire_bytes(const Operands& operands, Wire wire, std::size_t count) {
  if (wire == Wire::kAsIs) [[likely]]
    return count * size_of(operands.type);
  return wire == Wire::kBfloat16 ? count * kBfloat16Bytes : block_bytes(count);
}

// Most elements of a message: whole lines, as part_of() cuts segments.
std::size_t piece_elements(const Operands& operands, Wire wire, std::size_t hosts) {
  const std::size_t bytes = piece_bytes(hosts);
  if (wire == Wire::kAsIs) [[likely]]
    return bytes / size_of(operands.type);
  return wire == Wire::kBfloat16 ? bytes / kBfloat16Bytes
                                 : whole_blocks_in(bytes) / kLineElements * kLineElements;
}

bool is_rounded_on(Wire wire, const Operands& operands) {
  if (operands.collective == Collective::kAllGather || operands.reduction != Reduction::kSum ||
      operands.count * size_of(operands.type) < AllReduce::kRoundedBytes)
    return false;
  return wire == Wire::kFloat8 ? has_blocks(operands.type) : operands.type == ElementType::kFloat32;
}

// Between two hosts a rounded sum is not rounded once more if both exchange all of it.
Exchange exchange_for(const Operands& operands, std::size_t hosts, Wire wire) {
  if (operands.collective == Collective::kAllGather) return Exchange::kGathered;
  if (operands.collective == Collective::kReduceScatter) return Exchange::kOwned;
  const std::size_t bytes = operands.count * size_of(operands.type);
  const bool is_whole = hosts <= 2 ? bytes <= kWholeBytesOfTwo || wire != Wire::kAsIs
                                   : bytes * (hosts - 1) <= kWholeBytes;
  return is_whole ? Exchange::kWhole : Exchange::kScattered;
}

}  // namespace

AllReduce::AllReduce(Peers& peers, const GroupSetup& setup)
    : peers_(peers), setup_(setup), sources_(kSlots * setup.hosts), passes_(setup.workers) {
  for (std::size_t host = 0; host < setup_.hosts; ++host) {
    if (host == setup_.rank) continue;
    for (const Lane lane : {Lane::kContributions, Lane::kSums}) {
      streams_.push_back({.host = host, .lane = lane, .is_send = false});
      streams_.push_back({.host = host, .lane = lane, .is_send = true});
    }
  }
}

std::size_t AllReduce::scratch_bytes(std::size_t hosts, Wire wire) {
  return kSlots * Slot::bytes(hosts, wire);
}

Result<Job*> AllReduce::start(const Operands& operands) {
  if (failure_) return tl::unexpected(*failure_);
  Job& job = jobs_[started_ % kMaxJobs];
  if (job.is_used_) return nullptr;
  job = Job{};
  job.owner_ = this;
  job.number_ = started_;
  job.operands_ = operands;
  job.is_used_ = true;
  if (setup_.wire != Wire::kAsIs && is_rounded_on(setup_.wire, operands)) job.wire_ = setup_.wire;
  job.exchange_ = exchange_for(operands, setup_.hosts, job.wire_);
  job.longest_segment_ = longest_segment(job);
  const Range own = part_in_window(operands.window, {0, operands.count}, setup_.rank);
  if (operands.collective == Collective::kAllGather) job.from_begin_ = own.begin;
  if (operands.collective == Collective::kReduceScatter) job.to_begin_ = own.begin;
  ++started_;
  ZTCP_CHECK(advance());
  return &job;
}

Result<bool> Job::test() { return owner_->test(*this); }

Result<bool> AllReduce::test(Job& job) {
  ZTCP_CHECK(advance());
  const bool is_cut = job.number_ < cutting_;
  if (!is_cut || ended_ < job.end_) return false;
  job.is_used_ = false;
  return true;
}

// A failed job's operands may be freed.
Status AllReduce::advance() {
  if (failure_) return tl::unexpected(*failure_);
  while (true) {
    const Result<bool> moved = step();
    if (!moved) {
      failure_ = moved.error();
      settle();
      return tl::unexpected(*failure_);
    }
    if (!*moved && !passes_.work()) return {};
  }
}

Result<bool> AllReduce::step() {
  bool has_moved = passes_.collect([&](std::uint32_t slot) { --segments_[slot].open_tasks; });
  has_moved |= cut_segments();
  has_moved |= pass_ended(rounded_, begun_);
  for (Stream& stream : streams_) {
    has_moved |= ZTCP_TRY(post(stream));
    has_moved |= ZTCP_TRY(finish(stream));
  }
  has_moved |= reduce_segments();
  has_moved |= pass_ended(reduced_, reducing_);
  has_moved |= widen_segments();
  has_moved |= pass_ended(ended_, widening_);
  passes_.publish();
  return has_moved;
}

// Counts on from `ended` to the first segment before `given` whose pass is not over.
bool AllReduce::pass_ended(std::uint64_t& ended, std::uint64_t given) {
  const std::uint64_t before = ended;
  while (ended < given && segment(ended).open_tasks == 0) ++ended;
  return ended != before;
}

bool AllReduce::cut_segments() {
  const std::uint64_t before = begun_;
  while (cutting_ < started_) {
    Job& job = jobs_[cutting_ % kMaxJobs];
    const std::size_t left = job.operands_.count - job.cut_;
    if (left == 0) {
      job.end_ = begun_;
      ++cutting_;
      continue;
    }
    if (begun_ - ended_ == kSlots) break;
    const std::size_t count = std::min(left, job.longest_segment_);
    segments_[begun_ % kSlots] = {.job = &job, .elements = {job.cut_, count}};
    job.cut_ += count;
    const bool is_rounded = job.wire_ != Wire::kAsIs;
    if (is_rounded) round_contributions(begun_);
    ++begun_;
    if (is_rounded) break;  // It is sent before the next one is rounded.
  }
  return begun_ != before;
}

std::size_t AllReduce::longest_segment(const Job& job) const {
  if (job.exchange_ == Exchange::kGathered) return kGatheredBytes / size_of(job.operands_.type);
  const std::size_t pieces = job.exchange_ == Exchange::kScattered ? setup_.hosts : 1;
  return pieces * piece_elements(job.operands_, job.wire_, setup_.hosts);
}

Range AllReduce::part(const Segment& segment, std::size_t host) const {
  const Job& job = *segment.job;
  if (job.exchange_ == Exchange::kWhole) return segment.elements;
  if (job.exchange_ != Exchange::kScattered)
    return part_in_window(job.operands_.window, segment.elements, host);
  Range part = part_of(segment.elements.count, host, setup_.hosts);
  part.begin += segment.elements.begin;
  return part;
}

Slot AllReduce::slot(std::uint64_t number) const {
  return {setup_.scratch + number % kSlots * Slot::bytes(setup_.hosts, setup_.wire), setup_.hosts};
}

void AllReduce::give(std::uint64_t number, Pass pass) {
  pass.owner = static_cast<std::uint32_t>(number % kSlots);
  segments_[pass.owner].open_tasks += passes_.give(pass);
}

// Whether the contribution to the part of `host` is rounded before the reduction. Whole: the same
// bytes go to all hosts. Scattered: the reduction rounds the own part.
bool AllReduce::is_rounded_here(Exchange exchange, std::size_t host) const {
  if (exchange == Exchange::kOwned) return true;
  return (host == setup_.rank) == (exchange == Exchange::kWhole);
}

void AllReduce::round_contributions(std::uint64_t number) {
  const Segment& here = segment(number);
  for (std::size_t host = 0; host < setup_.hosts; ++host) {
    if (!is_rounded_here(here.job->exchange_, host)) continue;
    const Range elements = part(here, host);
    give(number, {.kind = Pass::Kind::kNarrow,
                  .form = here.job->wire_,
                  .type = here.job->operands_.type,
                  .wire = slot(number).rounded(host),
                  .values = here.job->from(elements.begin),
                  .elements = {0, elements.count}});
  }
}

Piece AllReduce::piece_for(const Stream& stream, std::uint64_t number) const {
  const Segment& here = segment(number);
  const Job& job = *here.job;
  const Operands& operands = job.operands_;
  const bool is_rounded = job.wire_ != Wire::kAsIs;
  const bool is_sum = stream.lane == Lane::kSums;
  const bool is_gathered = job.exchange_ == Exchange::kGathered;
  if (is_sum ? job.exchange_ != Exchange::kScattered && !is_gathered : is_gathered) return {};
  // A host gets contributions to its part and sends its part's sum; the peer's part goes the other
  // way.
  const bool is_own_part = stream.is_send == is_sum;
  const Range elements = part(here, is_own_part ? setup_.rank : stream.host);
  if (elements.count == 0) return {};
  const std::size_t bytes = wire_bytes(operands, job.wire_, elements.count);
  const Slot place = slot(number);
  const auto in_scratch = [&](std::byte* address) {
    return Piece{address, bytes, setup_.scratch_registration};
  };

  if (!is_sum && !stream.is_send) return in_scratch(place.contribution(stream.host));
  if (is_rounded && is_sum && !stream.is_send) return in_scratch(place.sum(stream.host));
  if (is_rounded)  // The own sum replaces the own contribution.
    return in_scratch(
        place.rounded(is_sum || job.exchange_ == Exchange::kWhole ? setup_.rank : stream.host));
  if (is_sum && !(is_gathered && stream.is_send))
    return {job.to(elements.begin), bytes, operands.to_registration};
  return {const_cast<std::byte*>(job.from(elements.begin)), bytes, operands.from_registration};
}

// Whether the stream's next message may be posted.
bool AllReduce::is_ready(const Stream& stream) const {
  const std::uint64_t number = stream.posted;
  if (number == begun_) return false;
  if (stream.lane == Lane::kContributions) return !stream.is_send || number < rounded_;
  const Job& job = *segment(number).job;
  if (stream.is_send) return number < reduced_ || job.exchange_ == Exchange::kGathered;
  // The sum may land where the contribution was taken from.
  const Operands& operands = job.operands_;
  return operands.from != operands.to || all_done(Lane::kContributions, true, number);
}

Result<bool> AllReduce::post(Stream& stream) {
  const std::uint64_t before = stream.posted;
  while (is_ready(stream)) {
    const Piece piece = piece_for(stream, stream.posted);
    Peers::Ticket ticket = nullptr;
    if (piece.size_bytes > 0) {
      ticket = ZTCP_TRY(stream.is_send ? peers_.send(stream.host, stream.lane, piece)
                                       : peers_.receive(stream.host, stream.lane, piece));
      if (ticket == nullptr) break;
    }
    stream.tickets[stream.posted++ % kSlots] = ticket;
  }
  return stream.posted != before;
}

Result<bool> AllReduce::finish(Stream& stream) {
  const std::uint64_t before = stream.done;
  while (stream.done < stream.posted) {
    const Peers::Ticket ticket = stream.tickets[stream.done % kSlots];
    const std::size_t bytes = piece_for(stream, stream.done).size_bytes;
    if (ticket != nullptr && !ZTCP_TRY(peers_.test(ticket, bytes))) break;
    ++stream.done;
  }
  return stream.done != before;
}

bool AllReduce::all_done(Lane lane, bool is_send, std::uint64_t number) const {
  return std::ranges::all_of(streams_, [&](const Stream& stream) {
    return stream.lane != lane || stream.is_send != is_send || stream.done > number;
  });
}

bool AllReduce::reduce_segments() {
  const std::uint64_t before = reducing_;
  for (; reducing_ < rounded_ && all_done(Lane::kContributions, false, reducing_); ++reducing_) {
    const Job& job = *segment(reducing_).job;
    const bool overwrites = job.operands_.from == job.operands_.to &&
                            job.exchange_ == Exchange::kWhole && job.wire_ == Wire::kAsIs;
    if (overwrites && !all_done(Lane::kContributions, true, reducing_)) break;
    if (job.exchange_ == Exchange::kGathered)
      copy_own_part(reducing_);
    else
      reduce(reducing_);
  }
  return reducing_ != before;
}

void AllReduce::copy_own_part(std::uint64_t number) {
  const Segment& here = segment(number);
  const Range elements = part(here, setup_.rank);
  if (elements.count == 0) return;
  sources(number)[0] = here.job->from(elements.begin);
  if (sources(number)[0] == here.job->to(elements.begin)) return;
  give(number, {.kind = Pass::Kind::kCombine,
                .type = here.job->operands_.type,
                .to = here.job->to(elements.begin),
                .sources = sources(number),
                .source_count = 1,
                .elements = {0, elements.count}});
}

void AllReduce::reduce(std::uint64_t number) {
  const Segment& here = segment(number);
  const Job& job = *here.job;
  const Operands& operands = job.operands_;
  const Range elements = part(here, setup_.rank);
  if (elements.count == 0) return;
  const Slot place = slot(number);
  const bool is_rounded = job.wire_ != Wire::kAsIs;
  for (std::size_t host = 0; host < setup_.hosts; ++host)
    sources(number)[host] = host != setup_.rank ? place.contribution(host)
                            : is_rounded        ? place.rounded(host)
                                                : job.from(elements.begin);
  const bool is_sent = job.exchange_ == Exchange::kScattered;
  give(number, {.kind = !is_rounded ? Pass::Kind::kCombine
                        : is_sent   ? Pass::Kind::kSumRounded
                                    : Pass::Kind::kSum,
                .form = job.wire_,
                .type = operands.type,
                .reduction = operands.reduction,
                .to = job.to(elements.begin),
                .wire = is_rounded ? place.rounded(setup_.rank) : nullptr,
                .values = job.from(elements.begin),
                .sources = sources(number),
                .source_count = setup_.hosts,
                .elements = {0, elements.count}});
}

bool AllReduce::widen_segments() {
  const std::uint64_t before = widening_;
  const auto is_over = [&](const Stream& stream) { return stream.done > widening_; };
  for (; widening_ < reduced_ && std::ranges::all_of(streams_, is_over); ++widening_)
    if (segment(widening_).job->wire_ != Wire::kAsIs) widen_sums(widening_);
  return widening_ != before;
}

void AllReduce::widen_sums(std::uint64_t number) {
  const Segment& here = segment(number);
  if (here.job->exchange_ != Exchange::kScattered) return;
  for (std::size_t host = 0; host < setup_.hosts; ++host) {
    if (host == setup_.rank) continue;
    const Range elements = part(here, host);
    give(number, {.kind = Pass::Kind::kWiden,
                  .form = here.job->wire_,
                  .type = here.job->operands_.type,
                  .to = here.job->to(elements.begin),
                  .wire = slot(number).sum(host),
                  .elements = {0, elements.count}});
  }
}

}  // namespace ztcp::reduce
