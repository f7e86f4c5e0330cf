// One flipped bit at a time, anywhere in a file: the file is rejected, or the bit is unused and the trace is the
// same. Never a crash, never different events.

#include <gtest/gtest.h>

#include <fstream>

#include "core/trace/trace_reader.h"
#include "tests/core/trace/support.h"
#include "tests/whole_grid.h"

namespace kvscope::trace::flipped_bits_test {
namespace {

void put_byte(const std::filesystem::path& path, std::size_t at, char byte) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(byte);
}

TEST(FlippedBits, AreRejectedOrChangeNothing) {
  const testing::Folder folder;
  const std::filesystem::path path = folder / "a.kvt";
  const std::vector<Event> events = testing::sample_events(40);
  testing::write_trace(path, events, {{"producer", "test"}, {"scenario", "{\"a\": [1, 2]}"}});
  const std::string bytes = testing::bytes_of(path);
  const Meta meta = TraceReader(path).meta();

  const auto thin = static_cast<std::size_t>(test::size_for_sanitizers(4, 1));
  int refused = 0;
  int unharmed = 0;
  std::size_t at_zero = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    // All of the header and of the list of tables, half of the nonzero bytes elsewhere (an eighth under the sanitizers), and some
    // of the zeros between them.
    if (at >= 1024 && (bytes[at] == 0 ? at_zero++ % (29 * thin) != 0 : at % (2 * thin) != 0)) continue;
    put_byte(path, at, static_cast<char>(bytes[at] ^ (1 << (at * 5 + at / 8) % 8)));
    try {
      TraceReader trace(path);
      trace.verify_all();
      EXPECT_TRUE(testing::equal(trace.events_in(0, trace.events()), events)) << at;
      EXPECT_EQ(trace.meta(), meta) << at;
      ++unharmed;
    } catch (const InputError&) {
      ++refused;
    }
    put_byte(path, at, bytes[at]);
  }
  TraceReader(path).verify_all();
  // Both outcomes must occur; otherwise the test changes nothing or checks nothing.
  EXPECT_GT(refused, 2000 / thin);
  EXPECT_GT(unharmed, 200 / thin);
  RecordProperty("refused", refused);
  RecordProperty("unharmed", unharmed);
}

// Whole runs of damaged bytes, as after a disk failure: a page of zeros, of ones, of another page's bytes.
TEST(FlippedBits, DestroyedPagesAreRejectedOrChangeNothing) {
  constexpr std::size_t kPage = 1024;
  const testing::Folder folder;
  const std::filesystem::path path = folder / "a.kvt";
  const std::vector<Event> events = testing::sample_events(400);
  testing::write_trace(path, events);
  const std::string bytes = testing::bytes_of(path);
  int refused = 0;
  for (std::size_t page = 0; page < bytes.size() / kPage; ++page) {
    const std::size_t other = (page * 7 + 3) % (bytes.size() / kPage);
    for (const std::string& replacement :
         {std::string(kPage, '\0'), std::string(kPage, '\xFF'), bytes.substr(other * kPage, kPage)}) {
      std::string changed = bytes;
      changed.replace(page * kPage, kPage, replacement);
      testing::put_bytes(path, changed);
      try {
        TraceReader trace(path);
        trace.verify_all();
        EXPECT_TRUE(testing::equal(trace.events_in(0, trace.events()), events)) << page;
      } catch (const InputError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 60);
}

}  // namespace
}  // namespace kvscope::trace::flipped_bits_test
