// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The other process of a shared-memory link writes any bytes to the memory that both map, at any
// time: each input is a script of turns of the two. For any bytes this end reads and fills only
// slots of the ring, holds none twice, lends only slots it has, and ends the link at the first
// impossible number.
#include <cstring>
#include <memory>
#include <vector>

#include "tests/fuzz/byte_source.h"
#include "transport/link/shm_ring.h"

namespace ztcp::fuzz {
namespace {

using namespace link;

constexpr std::uint32_t kSlots = 8;
constexpr std::uint32_t kSlotBytes = 128;

// Numbers near the limits are more frequent.
std::uint32_t number(ByteSource& in) {
  switch (in.u8() % 6) {
    case 0:
      return in.u8() % kSlots;
    case 1:
      return kSlots + in.u8() % 4;
    case 2:
      return 0U - in.u8() % 16;
    case 3:
      return 0x80000000U + in.u8();
    case 4:
      return in.u16();
    default:
      return std::uint32_t{in.u16()} << 16 | in.u16();
  }
}

// One direction of the link, as this end has it, and the memory that the other end writes to.
struct Way {
  std::unique_ptr<ShmWay> shared = std::make_unique<ShmWay>();
  // The exact size, so that AddressSanitizer detects an access beyond it.
  std::vector<std::byte> slots = std::vector<std::byte>(std::size_t{kSlots} * kSlotBytes);
  ShmPlace place() { return {shared.get(), slots.data(), kSlots, kSlotBytes}; }

  void require_inside(const std::byte* begin, std::size_t size) const {
    require(begin >= slots.data() && begin + size <= slots.data() + slots.size());
  }
  // A write by the hostile end.
  void write(ByteSource& in) {
    switch (in.u8() % 5) {
      case 0:
        shared->sent = number(in);
        break;
      case 1:
        shared->returned = number(in);
        break;
      case 2: {
        const ShmNote note{static_cast<std::uint16_t>(number(in)),
                           static_cast<std::uint16_t>(in.u8() % 2 != 0 ? in.u8() : number(in)),
                           in.u8() % 2 != 0 ? in.u8() : number(in)};
        shared->notes[in.u8() % kMaxShmSlots] = note.packed();
        break;
      }
      case 3:
        shared->numbers[in.u8() % kMaxShmSlots] = number(in);
        break;
      default:
        // As an honest end does, so that scripts get further.
        shared->notes[shared->sent % kSlots] =
            ShmNote{static_cast<std::uint16_t>(in.u8() % kSlots), 66, 62}.packed();
        shared->sent += 1;
    }
  }
};

class Receiving {
 public:
  void step(ByteSource& in) {
    switch (in.u8() % 4) {
      case 0:
        return way_.write(in);
      case 1:
        return give_back(in);
      default:
        return take();
    }
  }
  bool is_over() const { return is_over_; }

 private:
  void take() {
    if (const std::byte* next = receiver_.following()) way_.require_inside(next, 1);
    ShmNote note;
    switch (receiver_.take(note)) {
      case ShmReceiver::Outcome::kNothing:
        return;
      case ShmReceiver::Outcome::kBroken:
        is_over_ = true;
        return;
      case ShmReceiver::Outcome::kFrame:
        break;
    }
    for (const ShmNote& held : held_) require(held.slot != note.slot);
    held_.push_back(note);
    require(held_.size() <= kSlots && receiver_.held() == held_.size());
    // As the link reads it: whole lines of the header, and the payload in place.
    require(note.header_bytes <= TxFrame::kHeaderCapacity);
    way_.require_inside(receiver_.slot(note), TxFrame::kHeaderCapacity);
    way_.require_inside(receiver_.slot(note) + note.header_bytes, note.payload_bytes);
    std::memcpy(header_.data(), receiver_.slot(note), header_.size());
    for (std::uint32_t i = 0; i < note.payload_bytes; ++i)
      read_ = read_ ^ receiver_.slot(note)[note.header_bytes + i];
  }
  void give_back(ByteSource& in) {
    if (held_.empty()) return;
    const std::size_t which = in.u8() % held_.size();
    receiver_.give_back(held_[which].slot);
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(which));
    receiver_.publish();
  }

  Way way_;
  ShmReceiver receiver_{way_.place()};
  std::vector<ShmNote> held_;
  std::array<std::byte, TxFrame::kHeaderCapacity> header_{};
  std::byte read_{};
  bool is_over_ = false;
};

class Sending {
 public:
  void step(ByteSource& in) {
    switch (in.u8() % 4) {
      case 0:
        return way_.write(in);
      case 1:
        // The receiver of the sent slots is honest here.
        if (out_ != 0) way_.shared->numbers[given_++ % kSlots] = in.u8() % kSlots;
        way_.shared->returned = given_;
        return;
      default:
        return send();
    }
  }
  bool is_over() const { return is_over_; }

 private:
  void send() {
    const std::size_t before = sender_.room();
    if (!sender_.collect()) {
      is_over_ = true;
      return;
    }
    require(sender_.room() <= kSlots && sender_.room() >= before);
    out_ = kSlots - sender_.room();
    if (sender_.room() == 0) return;
    way_.require_inside(sender_.next_slot(), kSlotBytes);
    std::memset(sender_.next_slot(), 1, kSlotBytes);
    sender_.push(66, kSlotBytes - 66);
    sender_.publish();
    ++out_;
  }

  Way way_;
  ShmSender sender_{way_.place()};
  std::size_t out_ = 0;
  std::uint32_t given_ = 0;
  bool is_over_ = false;
};

template <class End>
void run(ByteSource& in) {
  End end;
  while (!in.is_empty() && !end.is_over()) end.step(in);
}

}  // namespace
}  // namespace ztcp::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ztcp::fuzz;
  ByteSource in(data, size);
  if (in.u8() % 2 == 0)
    run<Receiving>(in);
  else
    run<Sending>(in);
  return 0;
}
