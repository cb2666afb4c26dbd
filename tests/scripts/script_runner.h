// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Runs one script against a Stack, in virtual time. README.md has the grammar.
#pragma once

#include <deque>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "tests/scripts/segment_text.h"
#include "tests/unit/tcp/harness.h"

namespace ztcp::tcp::test {

class ScriptRunner {
 public:
  explicit ScriptRunner(const std::filesystem::path& script);

  // Empty, or the first difference: script and line, expected, got, time.
  std::string run();

 private:
  using Words = std::span<const std::string>;
  // A segment of the stack that no line has taken yet.
  struct Sent {
    Seg segment;
    TimePoint at;
  };

  void execute(const std::string& line);
  void configure(Words words);
  void call(const std::string& name, Words words);
  void send(const SegmentText& text);
  void expect_segment(const SegmentText& wanted, const std::string& text, TimePoint due,
                      Duration tolerance);
  void expect(Words words);
  void expect_number(Words words);
  std::string state() const;
  std::int64_t value_of(const std::string& name) const;
  void open(Words words);
  void accept(Words words);
  void answer_probe();
  void icmp(Words words);
  // Makes time pass and keeps the segments that leave meanwhile, each with its time.
  void advance(Duration duration);
  void collect();
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
  std::uint32_t ours_next_ = 0;  // After the last number of the stack that was seen.
  std::uint32_t last_timestamp_ = 0;
  std::uint32_t older_timestamp_ = 0;  // The one before.
  std::uint32_t last_label_ = 0;       // Of the last segment that a line has taken.
  bool timestamps_ = false;
  bool has_begun_ = false;
  int line_ = 0;
};

}  // namespace ztcp::tcp::test
