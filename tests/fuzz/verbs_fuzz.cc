// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Peers of RDMA connections that send anything over TCP: records of the exchange, in any pieces;
// and both ends of a rail of TCP with such a peer. Bytes land only in memory that awaits them.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "tests/fuzz/byte_source.h"
#include "transport/verbs/exchange.h"
#include "transport/verbs/note_log.h"
#include "transport/verbs/session/recv_session.h"
#include "transport/verbs/session/send_session.h"

namespace {

using namespace ztcp;
using namespace ztcp::verbs;
using fuzz::ByteSource;
using fuzz::require;

// --- The exchange --------------------------------------------------------------------------------
EndFacts own_facts(std::uint8_t rails) {
  EndFacts out;
  out.rails = rails;
  for (std::uint8_t i = 0; i < rails; ++i) {
    out.on[i].number = i / 2;
    out.on[i].is_tcp = i % 2;
    out.on[i].queue_pairs = 1;
    out.on[i].mtu = 5;
  }
  return out;
}

void take_facts(const EndFacts& ours, const EndFacts& theirs) {
  if (!mismatch(ours, theirs).empty()) return;
  require(theirs.rails >= 1 && theirs.rails <= kMaxRails);
  bool has_common = false;
  for (std::size_t i = 0; i < ours.rails; ++i) {
    const RailFacts* const on = counterpart(ours.on[i], theirs);
    if (on == nullptr) continue;
    has_common = true;
    require(on >= theirs.on.data() && on < theirs.on.data() + theirs.rails);
    require(on->key < kMaxRails && device_of(*on).size() <= on->device.size());
    require(on->is_tcp != 0 || (on->queue_pairs >= 1 && on->queue_pairs <= kMaxQueuePairs));
  }
  require(has_common);
}

// False: the exchange is over.
bool take_record(RecordReader& reader, const EndFacts& ours, NoteLog& notes) {
  switch (reader.kind()) {
    case RecordKind::kHello: {
      const auto hello = reader.take<Hello>();
      if (hello) take_facts(ours, hello->facts);
      return hello.has_value();
    }
    case RecordKind::kAnswer: {
      const auto answer = reader.take<Answer>();
      if (!answer) return false;
      require(!is_proven({}, make_hello({}, {}, ours), *answer));
      take_facts(ours, answer->facts);
      return true;
    }
    case RecordKind::kReady:
      return reader.take<Ready>().has_value();
    case RecordKind::kWait:
      return reader.take<Wait>().has_value();
    case RecordKind::kClose: {
      const auto record = reader.take<CloseRecord>();
      if (!record) return false;
      for (const char c : text_of(*record)) require(c >= ' ' && c <= '~');
      return true;
    }
    case RecordKind::kStream:
      return reader.take<StreamHello>().has_value();
    case RecordKind::kPath: {
      const auto path = reader.take<PathHello>();
      return path && notes.repeat(path->heard, [&](const RailNote& note) {
        require(note.number > path->heard);
      });
    }
    case RecordKind::kRail: {
      const auto note = reader.take<RailNote>();
      if (!note) return false;
      const std::uint32_t heard = notes.heard();
      const Result<bool> is_news = notes.hear(*note);
      require(notes.heard() == heard + (is_news && *is_news ? 1 : 0));
      require(!is_news || !*is_news || note->number == notes.heard());
      return is_news.has_value();
    }
  }
  return false;
}

void exchange(ByteSource& in) {
  const EndFacts ours = own_facts(static_cast<std::uint8_t>(1 + in.u8() % kMaxRails));
  NoteLog notes;
  for (unsigned n = in.u8() % 8U; n > 0; --n) notes.add(make_note(RailNote::Step::kFenced, 0, n));
  RecordReader reader;
  while (!in.is_empty()) {
    const auto room = reader.room();
    require(!room.empty() && room.size() <= ExchangeProtocol::kMaxBytes);
    const auto got = in.bytes(std::min<std::size_t>(1U + in.u8(), room.size()));
    std::copy(got.begin(), got.end(), room.begin());
    reader.add(got.size());
    const Result<bool> is_complete = reader.is_complete();
    if (!is_complete || (*is_complete && !take_record(reader, ours, notes))) return;
  }
}

// --- A rail of TCP -------------------------------------------------------------------------------

// The peer's end is the input.
class ScriptedPipe final : public Pipe {
 public:
  Result<std::size_t> send(std::span<const std::span<const std::byte>> parts) override {
    std::size_t took = 0;
    for (const auto part : parts) took += part.size();
    took = std::min(took, takes_);
    takes_ -= took;
    sent_bytes_ += took;
    return took;
  }
  Result<std::size_t> receive(std::span<const std::span<std::byte>> parts) override {
    std::size_t gave = 0;
    for (const auto part : parts) {
      const std::size_t n = std::min(part.size(), said_.size() - begin_);
      std::copy_n(said_.begin() + static_cast<std::ptrdiff_t>(begin_), n, part.begin());
      begin_ += n;
      gave += n;
    }
    return gave;
  }
  void say(std::span<const std::byte> bytes) {
    said_.insert(said_.end(), bytes.begin(), bytes.end());
  }
  void take_more(std::size_t bytes) { takes_ += bytes; }
  std::size_t sent_bytes() const { return sent_bytes_; }

 private:
  std::vector<std::byte> said_;
  std::size_t begin_ = 0;
  std::size_t takes_ = 1000;
  std::size_t sent_bytes_ = 0;
};

class OneStream final : public WorkQueues {
 public:
  OneStream(ScriptedPipe& pipe, Landings& landings) : stream(pipe, landings), pipe_(pipe) {}
  Status post(std::uint32_t, const WorkRequest& request) override {
    posted_bytes_ += sizeof(StreamRecord) + request.size_bytes;
    leaves_at_[request.id] = posted_bytes_;
    stream.post(request);
    return {};
  }
  Status post_receives(std::uint32_t, std::uint32_t) override { return {}; }
  // Bytes that have not left this end can't have arrived.
  void complete(std::uint64_t id) const { require(pipe_.sent_bytes() >= leaves_at_.at(id)); }

  PieceStream stream;

 private:
  const ScriptedPipe& pipe_;
  std::size_t posted_bytes_ = 0;
  std::map<std::uint64_t, std::size_t> leaves_at_;
};

StreamRecord record_of(ByteSource& in, std::uint64_t near) {
  StreamRecord out;
  out.kind = static_cast<StreamRecord::Kind>(in.u8() % 5);
  out.wants_answer = in.u8() % 2;
  out.size_bytes = in.u16();
  out.remote = near + in.u16() - 512;
  if (in.u8() % 2 == 0) {  // Whole slots.
    constexpr std::uint64_t kMost = 16 * sizeof(Slot);
    out.size_bytes = out.size_bytes % kMost / sizeof(Slot) * sizeof(Slot);
    out.remote = near + (out.remote - near) / sizeof(Slot) * sizeof(Slot);
  }
  out.immediate = encode({.slot = in.u8() % 16U,
                          .sequence = in.u8() % 8U,
                          .piece = in.u8() % 4U,
                          .pieces = 1U + in.u8() % 4U});
  out.landed = in.u8();
  return out;
}

// The peer's bytes of a turn: a record that is nearly right with bytes behind it, or anything.
void let_peer_say(ByteSource& in, ScriptedPipe& pipe, std::uint64_t near) {
  if (in.u8() % 4 == 0) return pipe.say(in.bytes(in.u8()));
  const StreamRecord record = record_of(in, near);
  pipe.say(std::as_bytes(std::span(&record, 1)));
  const bool has_bytes =
      record.kind == StreamRecord::Kind::kWrite || record.kind == StreamRecord::Kind::kPiece;
  if (has_bytes) pipe.say(std::vector<std::byte>(record.size_bytes, std::byte{in.u8()}));
}

class Receiver final : public Landings {
 public:
  explicit Receiver(ByteSource& in) : in_(in), memory_(kBuffers * kStride, kUntouched) {
    require(session_.begin().has_value());
  }
  void run() {
    while (!in_.is_empty()) {
      if (in_.u8() % 4 == 0 && session_.can_post() && posted_ < kBuffers) post();
      let_peer_say(in_, pipe_, address_of(in_.u8() % kBuffers));
      pipe_.take_more(in_.u8());
      if (!poll()) return;
    }
  }

 private:
  static constexpr std::size_t kBuffers = 24;
  static constexpr std::size_t kBytes = 2000;
  static constexpr std::size_t kStride = kBytes + 64;
  static constexpr std::byte kUntouched{0xa5};

  Result<Landing> place(const StreamRecord& record) override {
    const Landing to = ZTCP_TRY(session_.place(record));
    const std::size_t at = static_cast<std::size_t>(to.begin - memory_.data());
    require(at / kStride < posted_ && at % kStride + record.size_bytes <= kBytes);
    require(!session_.is_done(numbers_[at / kStride]));
    return to;
  }
  std::uint64_t address_of(std::size_t buffer) const {
    return reinterpret_cast<std::uint64_t>(memory_.data() + buffer * kStride);
  }
  void post() {
    const std::uint16_t number = session_.next_number();
    std::vector<RecvSession::Buffer> group;
    for (std::size_t n = std::min<std::size_t>(1U + in_.u8() % 3U, kBuffers - posted_); n > 0;
         --n) {
      numbers_[posted_] = number;
      group.push_back({.address = address_of(posted_++),
                       .rkeys = &keys_,
                       .size_bytes = kBytes,
                       .tag = static_cast<std::int32_t>(n)});
    }
    require(session_.post(group).has_value());
  }
  bool poll() {
    std::array<PieceStream::Told, 4> told;
    const auto count = queues_.stream.poll(told);
    if (!count) return false;
    for (std::size_t i = 0; i < *count; ++i) {
      if (!told[i].is_immediate) queues_.complete(told[i].id);
      const Status taken = told[i].is_immediate
                               ? session_.on_immediate(0, told[i].immediate, told[i].size_bytes)
                               : session_.on_completion(0, told[i].id);
      if (!taken) return false;
    }
    for (std::size_t i = 0; i < memory_.size(); ++i)
      if (i % kStride >= kBytes) require(memory_[i] == kUntouched);
    return true;
  }

  ByteSource& in_;
  std::vector<std::byte> memory_;
  std::array<std::uint16_t, kBuffers> numbers_{};
  std::size_t posted_ = 0;
  RailKeys keys_{};
  ScriptedPipe pipe_;
  OneStream queues_{pipe_, *this};
  Ring ring_{};
  RecvSession session_{
      {.rails = {0}, .inline_bytes = PieceStream::kInlineBytes, .ring = {}}, ring_, queues_};
};

class Sender final : public Landings {
 public:
  explicit Sender(ByteSource& in) : in_(in) {}
  void run() {
    const auto ring = reinterpret_cast<std::uint64_t>(memory_.ring.data());
    while (!in_.is_empty()) {
      if (in_.u8() % 2 == 0)
        post_row(ring);
      else
        let_peer_say(in_, pipe_, ring);
      pipe_.take_more(in_.u16());
      if (!poll() || (in_.u8() % 2 == 0 && !send())) return;
      for (const auto& guard : {memory_.before, memory_.behind})
        for (const std::byte one : guard) require(one == std::byte{});
    }
  }

 private:
  Result<Landing> place(const StreamRecord& record) override {
    const Landing to = ZTCP_TRY(session_.place(record));
    const auto* const ring = reinterpret_cast<const std::byte*>(memory_.ring.data());
    require(to.begin >= ring && to.begin + record.size_bytes <= ring + sizeof(Ring));
    return to;
  }
  void post_row(std::uint64_t ring) {
    const std::uint32_t buffers = in_.u8() % 10U;
    std::array<Slot, kGroup> row{};
    for (Slot& slot : row)
      slot = {.size_bytes = in_.u16(),
              .tag = in_.u8() % 3,
              .buffers = buffers,
              .flags = in_.u8() % 4U,
              .sequence = row_sequence_};
    const auto size = static_cast<std::uint32_t>(sizeof(Slot) * std::min(buffers, kGroup));
    const StreamRecord record{.kind = StreamRecord::Kind::kWrite,
                              .wants_answer = in_.u8() % 2 == 0,
                              .size_bytes = size,
                              .remote = ring + row_of(row_sequence_++) * sizeof(Slot)};
    pipe_.say(std::as_bytes(std::span(&record, 1)));
    pipe_.say(std::as_bytes(std::span(row)).first(size));
  }
  bool poll() {
    std::array<PieceStream::Told, 4> told;
    const auto count = queues_.stream.poll(told);
    if (!count) return false;
    for (std::size_t i = 0; i < *count; ++i) {
      if (told[i].is_immediate) return false;
      queues_.complete(told[i].id);
      if (!session_.on_completion(0, told[i].id)) return false;
    }
    return true;
  }
  bool send() {
    const auto number = static_cast<std::uint16_t>(sent_ % SendSession::kMessages);
    if (!session_.is_done(number)) return true;
    const auto taken =
        session_.post(number, {.bytes = std::span(bytes_).first(in_.u16() % bytes_.size()),
                               .tag = in_.u8() % 3,
                               .lkeys = &keys_});
    if (taken && *taken) ++sent_;
    return taken.has_value();
  }

  struct {
    std::array<std::byte, 4096> before{};
    Ring ring{};
    std::array<std::byte, 4096> behind{};
  } memory_;
  ByteSource& in_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(4096);
  RailKeys keys_{};
  std::uint32_t row_sequence_ = 1;
  std::size_t sent_ = 0;
  ScriptedPipe pipe_;
  OneStream queues_{pipe_, *this};
  SendSession session_{
      {{.rate_mbps = 1000, .inline_bytes = PieceStream::kInlineBytes, .is_tcp = true}},
      memory_.ring,
      queues_};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ByteSource in(data, size);
  switch (in.u8() % 3) {
    case 0:
      exchange(in);
      break;
    case 1:
      std::make_unique<Receiver>(in)->run();
      break;
    default:
      std::make_unique<Sender>(in)->run();
  }
  return 0;
}
