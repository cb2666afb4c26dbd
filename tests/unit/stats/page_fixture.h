// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A folder for statistics pages that goes with the test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "transport/stats/page_writer.h"

namespace ztcp::stats {

class PageFolder {
 public:
  PageFolder() {
    std::string path = std::filesystem::temp_directory_path() / "ztcp-page-XXXXXX";
    path_ = ::mkdtemp(path.data());
  }
  ~PageFolder() { std::filesystem::remove_all(path_); }
  PageFolder(const PageFolder&) = delete;
  PageFolder& operator=(const PageFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::shared_ptr<Page> create(const PageIdentity& identity = {}) const {
    auto page = Page::create(path_, false, identity);
    EXPECT_TRUE(page) << page.error().where << ": " << page.error().sys_errno;
    return page ? *page : nullptr;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace ztcp::stats
