#include "core/trace/trace_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <sstream>

#include "tests/core/trace/support.h"

namespace kvscope::trace::trace_file_test {
namespace {

using testing::Folder;

// Output and exit status of /usr/bin/python3 with `script`, in the folder of `file`. Python is in the list of packages
// that the build requires, so its absence is a failure and not a reason to skip.
std::pair<std::string, int> python(const std::filesystem::path& file, const std::string& script) {
  const std::filesystem::path program = file.parent_path() / "check.py";
  testing::put_bytes(program, script);
  const std::string command = "cd '" + file.parent_path().string() + "' && /usr/bin/python3 check.py 2>&1";
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return {"no pipe", -1};
  std::string output;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output += static_cast<char>(c);
  const int status = ::pclose(pipe);
  return {output, WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

TEST(TraceFile, WorkedExampleHasTheChecksumsTheHeaderSays) {
  const Folder folder;
  testing::write_trace(folder / "trace.kvt", {StepBegan{}});
  const std::vector<std::vector<std::string>> expected{{"0", "-1", "0", "0", "0"}, {"1", "0", "0", "1", "420107693"}};
  EXPECT_EQ(testing::select(folder / "trace.kvt", "SELECT * FROM step ORDER BY row"), expected);
}

TEST(TraceFile, HeaderCarriesTheApplicationIdAndTheVersion) {
  const Folder folder;
  testing::write_trace(folder / "trace.kvt", {});
  const std::string bytes = testing::bytes_of(folder / "trace.kvt");
  EXPECT_EQ(bytes.substr(68, 4), "kvtr");
  EXPECT_EQ(bytes.substr(60, 4), std::string("\0\0\0\4", 4));
}

// Uses no code of the reader: zlib, struct and sqlite3 of Python's standard library, over events with
// negative and extreme numbers.
TEST(TraceFile, PythonComputesEveryChecksumAndTotalAlike) {
  const Folder folder;
  std::vector<Event> events = testing::sample_events(60);
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    events.push_back(testing::event_of(kind, std::vector<std::int64_t>(kMaxFields, INT64_MIN + 1)));
    events.push_back(testing::event_of(kind, std::vector<std::int64_t>(kMaxFields, INT64_MAX)));
    events.push_back(testing::event_of(kind, std::vector<std::int64_t>(kMaxFields, -1)));
  }
  testing::write_trace(folder / "trace.kvt", events,
                       {{"producer", "test"}, {"scenario", "{\"na\\u00efve\": \"naïve\"}"}});
  const auto [output, status] = python(folder / "trace.kvt", R"(
import sqlite3, struct, zlib
db = sqlite3.connect("trace.kvt")
pack = lambda *n: struct.pack("<%dq" % len(n), *n)
kinds = db.execute("SELECT kind, events, name FROM kind ORDER BY kind").fetchall()
events = {}
for kind, count, name in kinds:
    rows = db.execute("SELECT * FROM " + name).fetchall()
    assert len(rows) == count, name
    for row in rows:
        assert row[0] not in events
        events[row[0]] = pack(row[0], kind, *row[1:])
steps = db.execute("SELECT row, step, first_event, events, crc FROM step ORDER BY row").fetchall()
next_event = 0
for i, (row, step, first, count, crc) in enumerate(steps):
    assert row == i and first == next_event
    assert zlib.crc32(b"".join(events[n] for n in range(first, first + count))) == crc, step
    next_event += count
assert next_event == len(events)
meta = dict(db.execute("SELECT key, value FROM meta"))
index = b"".join(pack(*row[1:]) for row in steps)
index += b"".join(pack(kind, count) + name.encode() + b"\0" for kind, count, name in kinds)
for key in sorted(k.encode() for k in meta if k != "checksum"):
    index += key + b"\0" + meta[key.decode()].encode() + b"\0"
assert str(zlib.crc32(index)) == meta["checksum"]
assert (meta["events"], meta["steps"], meta["detail"]) == (str(len(events)), str(len(steps)), "full")
print(len(steps), len(events))
)");
  const auto began = std::count_if(events.begin(), events.end(), [](const Event& e) { return e.index() == 0; });
  EXPECT_EQ(output, std::to_string(1 + began) + " " + std::to_string(events.size()) + "\n");
  EXPECT_EQ(status, 0);
}

// Runs the lines in the header's comment unchanged.
TEST(TraceFile, SnippetOfTheHeaderRunsAndHolds) {
  std::istringstream header(testing::bytes_of(std::filesystem::path(KVSCOPE_SOURCE_DIR) / "core/trace/trace_file.h"));
  std::string script = "import sqlite3, struct, zlib\n";
  std::string line;
  bool inside = false;
  int lines = 0;
  while (std::getline(header, line) && !line.starts_with("#pragma")) {
    if (inside && line.starts_with("//   ")) script += line.substr(5) + "\n", ++lines;
    inside = inside || line.starts_with("// In Python");
  }
  ASSERT_EQ(lines, 5);
  const Folder folder;
  testing::write_trace(folder / "trace.kvt", testing::sample_events(20));
  EXPECT_EQ(python(folder / "trace.kvt", script), std::pair(std::string(), 0));
  // The snippet must also be able to fail.
  testing::edit(folder / "trace.kvt", "UPDATE step SET crc = crc + 1 WHERE step = 7");
  EXPECT_EQ(python(folder / "trace.kvt", script).second, 1);
}

TEST(Checksum, IsTheSameInOnePieceAndInMany) {
  std::string bytes;
  Checksum pieces;
  for (std::int64_t i = 0; i < 5000; ++i) {  // past the buffer twice
    const std::int64_t number = (i % 64 - 32) * 0x00123456789ABCDE;
    for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(static_cast<std::uint64_t>(number) >> shift);
    pieces.add(number);
    if (i % 1000 == 0) {
      EXPECT_EQ(pieces.value(), crc32(bytes)) << i;
    }
  }
  EXPECT_EQ(pieces.value(), crc32(bytes));
  pieces.reset();
  EXPECT_EQ(pieces.value(), 0U);
}

TEST(MetaKeys, OnesTheWriterSetsAreReserved) {
  for (const char* key : {"detail", "events", "steps", "checksum"}) EXPECT_TRUE(is_reserved_meta_key(key)) << key;
  for (const char* key : {"producer", "scenario", "", "Detail"}) EXPECT_FALSE(is_reserved_meta_key(key)) << key;
}

}  // namespace
}  // namespace kvscope::trace::trace_file_test
