#include "core/staging/detail/batch_row.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "core/base/errors.h"

namespace kvscope::batch_row_test {
namespace {

CacheState batch_of(std::initializer_list<std::int64_t> sequences) {
  CacheState state;
  state.step = StepIdx{3};
  for (const std::int64_t seq : sequences) state.batch.emplace_back(seq);
  return state;
}

// Rows are not in the order of the sequences: a search that assumes sorted rows would miss 2.
TEST(BatchRow, IsWhereTheSequenceStands) {
  const CacheState state = batch_of({4, 9, 2});
  EXPECT_EQ(batch_row_of(state, SeqIdx{4}), SeqIdx{0});
  EXPECT_EQ(batch_row_of(state, SeqIdx{9}), SeqIdx{1});
  EXPECT_EQ(batch_row_of(state, SeqIdx{2}), SeqIdx{2});
  EXPECT_EQ(batch_row_of(state, SeqIdx{0}), std::nullopt);
  EXPECT_EQ(require_batch_row(state, SeqIdx{2}), SeqIdx{2});
}

TEST(BatchRow, OfAMissingSequenceNamesTheBatch) {
  const auto message = [](const CacheState& state) -> std::string {
    try {
      (void)require_batch_row(state, SeqIdx{5});
    } catch (const IndexError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message(batch_of({4, 9, 2})),
            "sequence 5 is not in the batch of step 3, which holds 4, 9, 2: choose one of these, or another step");
  EXPECT_EQ(batch_text(batch_of({})), "");
  EXPECT_EQ(batch_text(batch_of({0, 1, 2, 3, 4, 6, 7, 8})), "0, 1, 2, 3, 4, 6, 7, 8");
  EXPECT_EQ(batch_text(batch_of({0, 1, 2, 3, 4, 6, 7, 8, 9})), "0, 1, 2, 3, 4, 6, 7, 8, ... 9 in all");
}

}  // namespace
}  // namespace kvscope::batch_row_test
