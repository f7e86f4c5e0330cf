// A folder of files that belong together, such as the report, the scenario and the trace of one run: after commit() all
// of them are of this run, before it none is, and two runs at the same time do not mix.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/file.h"

namespace kvscope {

// The files are written to a temporary folder, which then takes the place of the final one:
//
//   out/                   the old set, or nothing
//   .kvscope-<...>.tmp/    the new set, complete and synced
//        | exchange        one atomic call (renameat2 with RENAME_EXCHANGE); then the old set is removed
//   out/                   the new set
//
// Two kinds of folders cannot be exchanged: one that contains other files, and one that is the current folder, the root
// of a file system, or in a folder that is not writable. There the files are moved one by one, under a lock of the
// folder, and moved back if one move fails. Only a power failure between two of these moves leaves files of two sets;
// each file is then complete. The same happens on a file system without the exchange (NFS).
//
// A name of the set that was not written is removed from the final folder, so that no file of an older set stays. A
// folder that is replaced keeps its mode, and so do its files; a symbolic link to the folder is followed.
// Example: PendingFolder out("out", {"report.txt", "trace.kvt"}); write_file_atomically(out / "report.txt", text);
//          out.commit();   ->  out/report.txt; a trace.kvt of an earlier run is removed.
class PendingFolder {
 public:
  // `names`: every file that the set may have. Creates the temporary folder, and missing parent folders of `folder`.
  // Throws InputError with the system's error message.
  PendingFolder(std::filesystem::path folder, std::vector<std::string> names);
  PendingFolder(const PendingFolder&) = delete;
  PendingFolder& operator=(const PendingFolder&) = delete;
  ~PendingFolder();  // without commit(): removes the temporary folder and the parent folders that it created

  // Where a file of the set is to be written before commit(). Precondition: `name` is one of the names.
  [[nodiscard]] OutputPath operator/(std::string_view name) const;
  void commit();

 private:
  enum class Outcome { done, impossible };
  [[noreturn]] void reject(int error) const;
  void create_parents();
  [[nodiscard]] bool has_only_the_set() const;
  void keep_access_of_files() const;
  [[nodiscard]] Outcome exchange();
  void move_files();
  void remove_displaced() const;

  std::filesystem::path shown_;  // as the caller named it
  std::filesystem::path final_;  // links followed
  std::filesystem::path temporary_;
  std::vector<std::string> names_;
  std::vector<std::filesystem::path> created_;  // parent folders, innermost first
  int slot_ = -1;
  bool committed_ = false;
};

// A folder for files of a computation, in the system's folder for temporary files. The destructor removes it with all
// that is in it; remove_pending_files() removes it with its files.
class TemporaryFolder {
 public:
  TemporaryFolder();  // throws InputError with the system's error message
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  [[nodiscard]] std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
  int slot_ = -1;
};

}  // namespace kvscope
