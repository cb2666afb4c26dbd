// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/record_reader.h"

#include <cstring>

namespace ztcp::msg {

const std::byte* RecordReader::gather_pieces(std::span<const std::byte>& input,
                                             std::size_t wanted) {
  const std::size_t take = std::min(wanted - held_bytes_, input.size());
  if (take != 0) std::memcpy(held_.data() + held_bytes_, input.data(), take);
  held_bytes_ += take;
  input = input.subspan(take);
  if (held_bytes_ < wanted) return nullptr;
  held_bytes_ = 0;
  end_copying();
  return held_.data();
}

RecordReader::Step RecordReader::read_preamble(std::span<const std::byte>& input) {
  const std::byte* bytes = gather(input, kPreambleBytes);
  // A stranger is detected by its first wrong byte; it may never send eight.
  const std::byte* seen = bytes != nullptr ? bytes : held_.data();
  const std::size_t seen_bytes = bytes != nullptr ? sizeof kMagic : held_bytes_;
  if (std::memcmp(seen, &kMagic, std::min(seen_bytes, sizeof kMagic)) != 0) return Step::kBadMagic;
  if (bytes == nullptr) return Step::kNeedMore;
  std::memcpy(&version_, bytes + sizeof kMagic, sizeof version_);
  state_ = State::kHeader;
  return Step::kPreamble;
}

RecordReader::Step RecordReader::next_record(std::span<const std::byte>& input) {
  if (state_ == State::kPreamble) return read_preamble(input);
  if (state_ == State::kHeader) {
    const std::byte* bytes = gather(input, kHeaderBytes);
    if (bytes == nullptr) return Step::kNeedMore;
    const auto header =
        decode_header(std::span<const std::byte, kHeaderBytes>(bytes, kHeaderBytes));
    if (!header) return Step::kBad;
    header_ = *header;
    state_ = State::kBody;
  }
  const std::byte* bytes = gather(input, header_.body_bytes);
  if (bytes == nullptr) return Step::kNeedMore;
  body_ = {bytes, header_.body_bytes};
  payload_left_ = header_.payload_bytes;
  state_ = State::kHeader;
  return Step::kRecord;
}

}  // namespace ztcp::msg
