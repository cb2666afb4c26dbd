// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A rail of TCP: a byte stream that does the work of queue pairs. A work request is a record with
// its bytes behind it, which the peer's end writes to their destination. A completion is a record
// in return; it confirms that the bytes are in place, not that a kernel has taken them.
//
//   welcome   the end that was dialled knows the connection
//   write     a row of slots, for the sender's ring
//   piece     a piece of a message, for the buffer of a slot
//   done      the number of records that wanted an answer and have landed
//
// Bytes of the peer are written only where their owner expects them (Landings). The owner is asked
// again for each portion, because a buffer that was posted may have failed meanwhile.
//
// The stream is moved only by the thread that polls the connection's queue pairs, one portion in
// each direction per call. That keeps memory safe by construction: no other thread reads or writes
// a buffer of NCCL's, so fencing the rail, aborting, and returning a buffer wait for nobody. Bytes
// that this thread can't carry beside its other work stay in the backlog, and the rail gets less
// (cut.h). A silent stream is read by every sixteenth poll alone, so that queue pairs beside it
// need not wait for a system call each time.
//
// A receiver reports a piece only after its answer has left: it may never poll again after its last
// message, while the sender waits for that answer.
//
// Pure: bytes go through a Pipe. One thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/result.h"
#include "transport/verbs/session/sent_work.h"
#include "transport/verbs/session/work.h"

namespace ztcp::verbs {

// Bytes to and from the peer's end, in order.
class Pipe {
 public:
  // Returns the bytes taken or given; 0: none now. An error: the pipe has ended.
  virtual Result<std::size_t> send(std::span<const std::span<const std::byte>> parts) = 0;
  virtual Result<std::size_t> receive(std::span<const std::span<std::byte>> parts) = 0;

 protected:
  ~Pipe() = default;
};

struct StreamRecord {
  enum class Kind : std::uint8_t { kWelcome = 1, kWrite = 2, kPiece = 3, kDone = 4 };

  Kind kind = Kind::kWelcome;
  std::uint8_t wants_answer = 0;
  std::uint16_t reserved = 0;
  std::uint32_t size_bytes = 0;  // Bytes behind the record.
  std::uint64_t remote = 0;      // Their destination.
  std::uint32_t immediate = 0;   // A piece's.
  std::uint32_t landed = 0;      // In a kDone: all so far, modulo 2^32.
};
static_assert(sizeof(StreamRecord) == 24);

// Where the bytes of a record begin.
struct Landing {
  std::byte* begin = nullptr;
  // They are polled as they arrive, so they are written in ascending order.
  bool is_polled = false;
};

class Landings {
 public:
  // kProtocol: no such record is expected there.
  virtual Result<Landing> place(const StreamRecord& record) = 0;

 protected:
  ~Landings() = default;
};

class PieceStream {
 public:
  // Bytes that are copied while they are posted, as queue pairs do.
  static constexpr std::uint32_t kInlineBytes = 64;
  // The most that a call moves in each direction, and that is read ahead.
  static constexpr std::size_t kPortionBytes = 128U << 10U;
  static constexpr std::size_t kStagedBytes = 32U << 10U;
  static constexpr std::uint32_t kPollEvery = 16;

  // Both outlive it.
  PieceStream(Pipe& pipe, Landings& landings);

  // Sent once by the end that was dialled.
  void welcome();
  bool is_welcome() const { return is_welcome_; }

  // If the stream has ended, the next poll says so.
  void post(const WorkRequest& request);

  struct Told {
    bool is_immediate = false;
    std::uint32_t immediate = 0;
    std::uint32_t size_bytes = 0;
    std::uint64_t id = 0;  // A completion's; it confirms all work before it.
  };
  // Returns the number of events in `out`. kProtocol: the peer broke the protocol; any other error:
  // the stream has ended.
  Result<std::size_t> poll(std::span<Told> out);
  // A record is expected: the next poll reads, even from a silent stream.
  void expect() { silent_polls_ = 0; }
  // For a stream that is closed: the piece that has landed and was not reported, if any.
  std::optional<Told> take_untold() { return std::exchange(untold_, std::nullopt); }

 private:
  // A record to be sent, and its bytes.
  struct Outgoing {
    StreamRecord record;
    const std::byte* bytes = nullptr;  // Null: the bytes are in `kept`.
    std::array<std::byte, kInlineBytes> kept{};
  };
  // Posted work and as many answers; a peer that causes more answers is not read until some have
  // left.
  static constexpr std::size_t kQueued = 2 * kSendDepth + 2;

  Outgoing& push(const StreamRecord& record);
  Status flush();
  Status answer();
  Result<std::size_t> fill();
  Status take(std::span<Told> out, std::size_t& count);
  Result<std::size_t> land(std::size_t most);
  Status finish(std::span<Told> out, std::size_t& count);
  Status on_done(const StreamRecord& record, std::span<Told> out, std::size_t& count);

  Pipe& pipe_;
  Landings& landings_;
  std::optional<Error> broken_;
  bool is_welcome_ = false;

  std::vector<Outgoing> queue_ = std::vector<Outgoing>(kQueued);
  std::uint64_t first_queued_ = 0;
  std::uint64_t next_queued_ = 0;
  std::size_t sent_bytes_ = 0;  // Sent bytes of the first entry, its record included.
  std::array<std::uint64_t, kSendDepth> answered_ids_{};  // The ids of work that wants an answer.
  std::uint32_t wanted_answers_ = 0;
  std::uint32_t awaited_answers_ = 0;  // Answers that are due for work that has left.
  std::uint32_t answers_ = 0;

  std::vector<std::byte> staged_ = std::vector<std::byte>(kStagedBytes);
  std::size_t staged_begin_ = 0;
  std::size_t staged_end_ = 0;
  std::optional<StreamRecord> landing_;
  std::uint32_t landed_bytes_ = 0;   // Bytes of that record.
  std::uint32_t landed_ = 0;         // Records that wanted an answer.
  std::optional<Told> untold_;       // The piece with an answer that has not left.
  std::uint32_t silent_polls_ = 0;   // Polls since bytes arrived last.
  std::uint32_t blocked_polls_ = 0;  // Polls since bytes were sent last; 0: nothing waits.
};

}  // namespace ztcp::verbs
