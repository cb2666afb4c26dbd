// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Runs one script against a Stack, in virtual time. README.md has the grammar.
#pragma once

#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/scripts/message_text.h"
#include "tests/scripts/segment_text.h"
#include "tests/unit/tcp/harness.h"

namespace ztcp::tcp::test {

// The peer's bytes and ours depend on their position alone, so repeats have the same.
Bytes bytes_at(std::int64_t number, std::size_t size);
// "timed-out"
Errc to_errc(const std::string& text);

class ScriptRunner {
 public:
  explicit ScriptRunner(const std::filesystem::path& script);

  // Empty, or the first difference: script and line, expected, got, time.
  std::string run();

 private:
  using Words = std::span<const std::string>;
  // A segment or a message of the stack that no line has taken yet.
  struct Sent {
    Seg segment;
    std::optional<MessageText> message;
    MacAddress to;
    TimePoint at;
  };
  // The expectation of a line with '>', and when it is due.
  struct Wanted {
    std::string text;
    TimePoint due;
    Duration tolerance;
  };

  // Executes the lines from `begin` on, up to the one that is `end`.
  void execute_lines(std::size_t begin, std::size_t end);
  std::size_t end_of_block(std::size_t begin) const;
  void execute(const std::string& line);
  void begin();
  void configure(Words words);
  void call(const std::string& name, Words words);
  void connect(Words words);
  void send(const SegmentText& text);
  std::uint32_t acknowledgement(const SegmentText& text) const;
  void add_sack(Seg& segment, const std::string& block) const;
  Bytes add_options(const SegmentText& text, Seg& segment);
  void arrive(std::unique_ptr<Frame> frame);
  void end_burst();
  // The next segment or message, in time.
  Sent take(const Wanted& wanted);
  void expect_segment(SegmentText text, const Wanted& wanted);
  void expect_message(const MessageText& text, const Wanted& wanted);
  void expect(Words words);
  void expect_number(Words words);
  std::string state() const;
  std::string control() const;
  std::int64_t value_of(const std::string& name) const;
  void open(Words words);
  void accept(Words words);
  void answer_probe();
  void icmp(Words words);
  // Makes time pass and keeps the segments that leave meanwhile, each with its time.
  void advance(Duration duration);
  void collect();
  void note(const Seg& segment);
  Sent sent_message(const Bytes& frame);
  std::int64_t echo_age(const Sent& sent) const;
  std::string text_of_sent(const Sent& sent) const;
  Names names() const;
  void expect_silence();
  Peer& peer();
  [[noreturn]] void differ(const std::string& expected, const std::string& got) const;
  TimePoint start() const { return at({}); }

  const std::filesystem::path path_;
  StackConfig config_ = test_config();
  std::unique_ptr<Peer> peer_;  // From the first line that is no setting.
  Origins origins_;
  std::deque<Sent> sent_;
  std::int64_t peer_next_ = 0;   // The peer's next number, relative.
  std::uint32_t peer_ack_ = 0;   // Its last acknowledgement.
  std::uint32_t ours_next_ = 0;  // After the last number of the stack that was seen.
  std::uint32_t last_timestamp_ = 0;
  std::uint32_t older_timestamp_ = 0;  // The one before.
  std::uint32_t last_label_ = 0;       // In the last segment that a line has taken.
  std::uint16_t last_port_ = 0;        // The same; the stack's.
  std::int32_t isn_step_ = 0;          // From the last connection to the newest one.
  std::int32_t ts_step_ = 0;
  std::vector<std::unique_ptr<Frame>> burst_;
  bool is_in_burst_ = false;
  bool timestamps_ = false;
  bool has_begun_ = false;
  std::vector<std::string> lines_;
  std::size_t line_ = 0;  // Counted from 1.
};

}  // namespace ztcp::tcp::test
