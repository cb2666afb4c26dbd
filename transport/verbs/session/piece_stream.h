// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A rail of TCP: carries over a stream of bytes what queue pairs carry otherwise. A work request is
// a record with its bytes behind it, which the peer's end puts where they belong, and a completion
// is a record in return: that they lie there, not that a kernel has taken them.
//
//   welcome   who was dialled knows the connection
//   write     a row of slots, for the sender's ring
//   piece     of a message, for the buffer of a slot
//   done      so many that wanted an answer have landed
//
// Nothing that a peer says is written anywhere but where its owner expects it (Landings), who is
// asked anew for each portion: what was a posted buffer may have failed meanwhile.
//
// No thread moves it, but who polls the connection's queue pairs, a portion each way in a call.
// That keeps memory safe by construction: nobody else reads or writes a buffer of NCCL's, so who
// fences the rail, aborts, or gives a buffer back waits for nobody. What that thread can't carry
// beside its other work stays in the backlog, and the rail is given less (cut.h). A stream that is
// silent is asked by every sixteenth poll alone: else queue pairs beside it would wait for a system
// call each time.
//
// A receiver is told of a piece only when its answer has left: it may never poll again after its
// last message, while the sender waits for that.
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

#include "transport/core/result.h"
#include "transport/verbs/session/sent_work.h"
#include "transport/verbs/session/work.h"

namespace ztcp::verbs {

// Bytes to and from the peer's end, in order.
class Pipe {
 public:
  // How many it took, or gave; 0: none now. An error: it has ended.
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
  std::uint32_t size_bytes = 0;  // That follow.
  std::uint64_t remote = 0;      // Where they belong.
  std::uint32_t immediate = 0;   // Of a piece.
  std::uint32_t landed = 0;      // Of a kDone: all so far, modulo 2^32.
};
static_assert(sizeof(StreamRecord) == 24);

// Where the bytes of a record begin.
struct Landing {
  std::byte* begin = nullptr;
  bool is_polled = false;  // Somebody looks at them as they come: in ascending order.
};

class Landings {
 public:
  // kProtocol: nothing of the kind is expected there.
  virtual Result<Landing> place(const StreamRecord& record) = 0;

 protected:
  ~Landings() = default;
};

class PieceStream {
 public:
  // That are copied while they are posted, as queue pairs do.
  static constexpr std::uint32_t kInlineBytes = 64;
  // What a call moves each way at most, and what is read ahead.
  static constexpr std::size_t kPortionBytes = 128U << 10U;
  static constexpr std::size_t kStagedBytes = 32U << 10U;
  static constexpr std::uint32_t kLookEvery = 16;

  // Both outlive it.
  PieceStream(Pipe& pipe, Landings& landings);

  // Whoever was dialled says so once.
  void welcome();
  bool is_welcome() const { return is_welcome_; }

  // That it has ended is told by the next poll.
  void post(const WorkRequest& request);

  struct Told {
    bool is_immediate = false;
    std::uint32_t immediate = 0;
    std::uint32_t size_bytes = 0;
    std::uint64_t id = 0;  // Of a completion, which is that of all before.
  };
  // How many it has to tell. kProtocol: the peer said what it may not; another: it has ended.
  Result<std::size_t> poll(std::span<Told> out);
  // Something is due: the next poll asks, however silent it was.
  void expect() { silent_polls_ = 0; }
  // Before it goes: the piece that has landed and was not told of, if there is one.
  std::optional<Told> take_untold() { return std::exchange(untold_, std::nullopt); }

 private:
  // To be sent: a record, and its bytes.
  struct Outgoing {
    StreamRecord record;
    const std::byte* bytes = nullptr;  // Null: they are kept.
    std::array<std::byte, kInlineBytes> kept{};
  };
  // What is posted, and as many answers: who has more to say is heard no further.
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
  std::size_t sent_bytes_ = 0;  // Of the first one, its record counted in.
  std::array<std::uint64_t, kSendDepth> answered_ids_{};  // Of those that want an answer.
  std::uint32_t wanted_answers_ = 0;
  std::uint32_t awaited_answers_ = 0;  // Of them, to what has left.
  std::uint32_t answers_ = 0;

  std::vector<std::byte> staged_ = std::vector<std::byte>(kStagedBytes);
  std::size_t staged_begin_ = 0;
  std::size_t staged_end_ = 0;
  std::optional<StreamRecord> landing_;
  std::uint32_t landed_bytes_ = 0;   // Of it.
  std::uint32_t landed_ = 0;         // That wanted an answer.
  std::optional<Told> untold_;       // Whose answer has not left.
  std::uint32_t silent_polls_ = 0;   // Since something came last.
  std::uint32_t blocked_polls_ = 0;  // Since something went last; 0: nothing waits.
};

}  // namespace ztcp::verbs
