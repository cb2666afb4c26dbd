// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Captures: any bytes as a request at the socket of a running job, as a job's answer, and as the
// memory that a capturing program reads. A request that is taken has a name that can be printed and
// a ring within the limits; a reader reads only its ring.
#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "tests/fuzz/byte_source.h"
#include "transport/stats/capture_ring.h"
#include "transport/stats/capture_wire.h"

namespace ztcp::fuzz {
namespace {

void try_request(std::span<const std::byte> message) {
  const auto request = stats::parse_request(message);
  if (!request) return;
  require(message.size() == sizeof(stats::CaptureRequest));
  if (request->kind != stats::CaptureKind::kStart) return;
  const auto name = stats::text_of(request->device);
  require(!name.empty() && name.size() < request->device.size());
  for (const std::size_t lanes : {1U, 3U, 64U}) {
    const std::uint64_t ring = stats::fitting_ring(request->ring_bytes, lanes);
    require(std::has_single_bit(ring) && ring >= stats::kLeastRingBytes &&
            ring * lanes <= stats::kMostCaptureBytes);
  }
}

void try_answer(std::span<const std::byte> message) {
  const auto answer = stats::parse_answer(message);
  if (!answer || answer->status != stats::CaptureStatus::kOk || answer->lanes == 0) return;
  require(stats::capture_bytes(answer->lanes, answer->ring_bytes) < std::size_t{1} << 33);
}

// The job's end writes its numbers and any records.
void try_ring(ByteSource in) {
  // The exact size, so that AddressSanitizer detects an access beyond it.
  std::vector<std::byte> ring(256);
  stats::CaptureLaneState state;
  stats::CaptureCursor cursor;
  stats::CaptureReader reader(state, ring, cursor);
  while (!in.is_empty()) {
    const std::size_t at = in.u8();
    const auto bytes = in.bytes(std::min<std::size_t>(in.u8(), ring.size() - at));
    std::copy(bytes.begin(), bytes.end(), ring.begin() + static_cast<std::ptrdiff_t>(at));
    state.tail_bytes =
        in.u8() % 4 == 0 ? in.u16() * std::uint64_t{1} << 48 : cursor.head_bytes + in.u8();
    while (const auto frame = reader.peek(reader.written_bytes())) {
      if (*frame == nullptr) break;
      require((*frame)->bytes.size() <= ring.size());
      reader.pop();
    }
  }
}

}  // namespace
}  // namespace ztcp::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ztcp::fuzz;
  ByteSource in(data, size);
  const std::uint8_t kind = in.u8();
  if (kind % 3 == 2) {
    try_ring(in);
    return 0;
  }
  // A copy of the exact size, for AddressSanitizer.
  const auto view = in.bytes(size);
  const std::vector<std::byte> message(view.begin(), view.end());
  kind % 3 == 0 ? try_request(message) : try_answer(message);
  return 0;
}
