// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/unit/tools/ztcp_setup/fake_tree.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tests/unit/tools/ztcp_setup/fake_paths.h"

namespace ztcp::setup::test {
namespace {

namespace fs = std::filesystem;

}  // namespace

std::optional<std::string> FakeTree::read(const std::string& path) const {
  std::error_code error;
  if (!fs::is_regular_file(root() + path, error)) return std::nullopt;
  std::ifstream file(root() + path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string FakeTree::line(const std::string& path) const {
  const std::string text = read(path).value_or("");
  return text.substr(0, text.find('\n'));
}

std::optional<std::string> FakeTree::link_target(const std::string& path) const {
  std::error_code error;
  const fs::path target = fs::read_symlink(root() + path, error);
  return error ? std::nullopt : std::optional(target.string());
}

std::string FakeTree::link_name(const std::string& path) const {
  return fs::path(link_target(path).value_or("")).filename().string();
}

std::vector<std::string> FakeTree::list(const std::string& folder) const {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root() + folder, error))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

FileKind FakeTree::kind(const std::string& path) const {
  std::error_code error;
  switch (fs::symlink_status(root() + path, error).type()) {
    case fs::file_type::regular:
      return FileKind::kFile;
    case fs::file_type::directory:
      return FileKind::kFolder;
    case fs::file_type::symlink:
      return FileKind::kLink;
    default:
      return FileKind::kAbsent;
  }
}

std::vector<std::string> FakeTree::paths_on_disk() const {
  std::vector<std::string> paths;
  for (const std::string& top : list("/")) {
    if (top == "sys" || top == "proc") continue;
    paths.push_back("/" + top);
    std::error_code error;
    for (const auto& entry : fs::recursive_directory_iterator(root() + "/" + top, error))
      paths.push_back(entry.path().string().substr(root().size()));
  }
  return paths;
}

std::vector<std::string> FakeTree::nics() const {
  std::vector<std::string> found;
  for (const std::string& pci : list(std::string(kDevices)))
    if (line(std::string(kDevices) + pci + "/class").starts_with("0x02")) found.push_back(pci);
  return found;
}

std::vector<std::string> FakeTree::interfaces_of(const std::string& pci) const {
  const std::string device = std::string(kDevices) + pci;
  std::vector<std::string> names = list(device + "/net");
  for (const std::string& child : list(device))
    if (child.starts_with("virtio"))
      for (std::string& name : list(device + "/" + child + "/net"))
        names.push_back(std::move(name));
  return names;
}

}  // namespace ztcp::setup::test
