// case: 0, pages: table_columns. 1, rows, requests, page_size, null_page, columns, the order, and for each request
// tokens, held and its blocks: the table and 64 entries after it, which must keep their value.
// Around the blocks, requests and entries there is room for what typical errors read and write, so that they give a wrong
// table and do not end the program: request -1, a block of each token, an entry of each token.
#include "cases.h"
#include "table.h"

constexpr std::size_t kAround = 4096;
constexpr std::uint32_t kNoBlock = 999999;

int main() {
  return cases::run([](const cases::Words& words) {
    if (words[0] == 0) return cases::Words{table_columns(words[1])};
    const std::int64_t rows = words[1], count = words[2], columns = words[5];
    std::vector<std::vector<std::uint32_t>> blocks{std::vector<std::uint32_t>(kAround, kNoBlock)};
    std::vector<Request> requests{{1, nullptr, 1}};
    auto at = words.begin() + 6 + rows;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t tokens = at[0], held = at[1];
      blocks.emplace_back(at + 2, at + 2 + held);
      blocks.back().resize(kAround, kNoBlock);
      requests.push_back({tokens, blocks.back().data(), held});
      at += 2 + held;
    }
    for (std::size_t i = 0; i < requests.size(); ++i) requests[i].blocks = blocks[i].data();
    const Batch batch{requests.data() + 1, words.data() + 6, rows, words[3], static_cast<std::uint32_t>(words[4])};
    std::vector<std::uint32_t> table(static_cast<std::size_t>(rows * columns) + kAround, 0x7ffffff1);
    build_table(batch, columns, table.data());
    return cases::Words(table.begin(), table.begin() + rows * columns + 64);
  });
}
