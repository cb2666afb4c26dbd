// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/look/look.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace ztcp::stat {
namespace {

class Folder {
 public:
  Folder() {
    std::string path = std::filesystem::temp_directory_path() / "ztcp-look-XXXXXX";
    path_ = ::mkdtemp(path.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

TEST(Look, StateAndStartOfAProcess) {
  const std::string fields =
      " 1 1 1 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 1 0 8899 1000 200 18446744073709551615";
  const ProcessState state = parse_process_state("4242 (a b) T" + fields);
  EXPECT_EQ(state.letter, 'T');
  EXPECT_EQ(state.start_ticks, 8899u);
  EXPECT_EQ(parse_process_state("4242 (x) S) R" + fields).letter, 'R');
}

TEST(Look, TextThatIsNoProcessStateIsUnknown) {
  for (const char* text :
       {"", "4242", "4242 (a)", "4242 (a) ", "4242 (a) T 1 2", ")", "4242 (a) T x"})
    EXPECT_EQ(parse_process_state(text).letter, '?') << text;
}

TEST(Look, ControlCharactersOfAPageDoNotReachTheTerminal) {
  stats::Snapshot snapshot;
  snapshot.process.host = "gpu\033[2J";
  snapshot.devices.push_back({});
  snapshot.devices[0].name = "z\n";
  snapshot.connections.push_back({});
  snapshot.connections[0].peer_host = "\xff\xfe";
  make_printable(snapshot);
  EXPECT_EQ(snapshot.process.host, "gpu?[2J");
  EXPECT_EQ(snapshot.devices[0].name, "z?");
  EXPECT_EQ(snapshot.connections[0].peer_host, "??");
}

TEST(Look, DamagedPageIsListedWithItsError) {
  const Folder folder;
  std::ofstream(folder.path() / "a.page") << "no page";
  Selection selection;
  selection.crash_file = folder.path() / "a.page";
  const auto look = look_at(selection);
  ASSERT_TRUE(look);
  ASSERT_EQ(look->pages.size(), 1u);
  EXPECT_EQ(look->pages[0].error, "not a statistics page of ztcp");
  EXPECT_EQ(look->pages[0].file, selection.crash_file);
}

TEST(Look, MissingCrashFileIsAnErrorOfItsPage) {
  Selection selection;
  selection.crash_file = "/nonexistent/page";
  const auto look = look_at(selection);
  ASSERT_TRUE(look);
  ASSERT_EQ(look->pages.size(), 1u);
  EXPECT_EQ(look->pages[0].error, "open: No such file or directory");
}

TEST(Look, FolderWithoutPagesHasNone) {
  const Folder folder;
  std::ofstream(folder.path() / "notes.txt") << "no page";
  Selection selection;
  selection.folder = folder.path();
  const auto look = look_at(selection);
  ASSERT_TRUE(look);
  EXPECT_TRUE(look->pages.empty());
  selection.folder = "/nonexistent";
  EXPECT_TRUE(look_at(selection)->pages.empty());
}

}  // namespace
}  // namespace ztcp::stat
