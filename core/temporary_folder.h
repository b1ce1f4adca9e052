// A folder in the temporary directory that goes with its owner, however that ends.
//
//   const auto folder = TemporaryFolder::make("emulator");    // sundog-emulator-a1B2c3
//   write_file(folder->path() / "unit.cu", text);
//
// The destructor removes it with everything in it.  A process that is killed cannot; so a lock is
// held on a file inside, which the system drops with the process, and making a folder removes those
// of the same user whose lock is free.
#pragma once

#include <filesystem>
#include <string_view>

#include "core/status.h"

namespace sundog {

class TemporaryFolder {
 public:
  // A folder named sundog-KIND-XXXXXX.  Errors: kIo.
  static Result<TemporaryFolder> make(std::string_view kind);

  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  TemporaryFolder() = default;
  void remove();
  std::filesystem::path path_;  // empty: moved from
  int lock_ = -1;
};

}  // namespace sundog
