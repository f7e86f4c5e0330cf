// Tensor memory: allocation, the cells of each shape of tcgen05.ld and st against formulas of their own, and who may
// access what.
#include <gmock/gmock.h>

#include <array>
#include <map>
#include <set>
#include <string>

#include "gpu/virtual/machine/tensor/tensor_layout.h"
#include "tests/gpu/virtual/machine/one_kernel.h"

namespace kvscope::ptx::test::tensor_memory_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kAlloc =
    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], %COLUMNS%;\n"
    "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n"
    "ld.shared.u32 %r1, [s];\n";
constexpr const char* kFree = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, %COLUMNS%;\n";

std::string with(std::string text, const std::string& name, const std::string& value) {
  for (std::size_t at = 0; (at = text.find(name)) != std::string::npos;) text.replace(at, name.size(), value);
  return text;
}
std::string in_memory(int columns, const std::string& body) {
  return with(std::string(kAlloc) + body + kFree, "%COLUMNS%", std::to_string(columns));
}
Ran run_100(const std::string& body, std::size_t out_bytes = 64, std::int64_t threads = 32) {
  return run({.body = body, .out_bytes = out_bytes, .threads = threads, .target = "sm_100a"});
}

std::string list_of(const std::string& prefix, int from, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += (i > 0 ? ", " : "") + prefix + std::to_string(from + i);
  return text + "}";
}

// --- shapes: cells as sets of bits, counted from the definition of each shape in another order than the library's ---

// Rows of 32-bit words, the pieces of 64, 128 or 256 bits of 16 rows: which thread and register hold word w of row r.
std::pair<int, int> holder(const std::string& shape, int r, int w) {
  if (shape == "32x32b") return {r, w};
  if (shape == "16x32bx2") return {r, w};
  const int words = shape == "16x64b" ? 2 : shape == "16x128b" ? 4 : 8;
  const int repeat = w / words, in = w % words, upper = r / 8;
  // 16x64b: four threads of a row of eight: word 0 and 1 of the upper rows are held by the odd threads
  if (shape == "16x64b") return {4 * (r % 8) + 2 * in + upper, repeat};
  if (shape == "16x128b") return {4 * (r % 8) + in, 2 * repeat + upper};
  return {4 * (r % 8) + in / 2, 4 * repeat + 2 * upper + in % 2};
}

TEST(TensorLayout, EachShapeCoversItsRowsOnceAsItsDefinitionSays) {
  const std::map<std::string, TensorShape> shapes{{"32x32b", TensorShape::s32x32b},
                                                  {"16x64b", TensorShape::s16x64b},
                                                  {"16x128b", TensorShape::s16x128b},
                                                  {"16x256b", TensorShape::s16x256b}};
  for (const auto& [name, shape] : shapes) {
    const int per = name == "16x256b" ? 4 : name == "16x128b" ? 2 : 1, rows = name == "32x32b" ? 32 : 16;
    for (int repeats = 1; repeats * per <= 128; repeats *= 2) {
      const TensorMove move{.shape = shape, .registers = repeats * per};
      const int words = 32 * move.registers / rows;
      std::set<std::pair<int, int>> seen;
      for (int r = 0; r < rows; ++r) {
        for (int w = 0; w < words; ++w) {
          const auto [thread, reg] = holder(name, r, w);
          EXPECT_EQ(cell_of(move, thread, reg), (TensorAddress{r, w})) << name << " x" << repeats;
          EXPECT_TRUE(seen.insert({thread, reg}).second);
        }
      }
      EXPECT_EQ(static_cast<int>(seen.size()), 32 * move.registers);
      const auto regions = regions_of(move, {32, 8});
      ASSERT_EQ(regions.size(), 1u);
      EXPECT_EQ(regions[0], (TensorRegion{32, rows, 8, words}));
    }
  }
  // Figures of the PTX ISA, data movement shapes.
  EXPECT_EQ(cell_of({.shape = TensorShape::s16x256b, .registers = 4}, 3, 2), (TensorAddress{8, 6}));
  EXPECT_EQ(cell_of({.shape = TensorShape::s16x64b, .registers = 1}, 2, 0), (TensorAddress{0, 1}));
  EXPECT_EQ(cell_of({.shape = TensorShape::s16x32bx2, .registers = 2, .split = 8}, 16, 1), (TensorAddress{0, 9}));
  EXPECT_EQ(cell_of({.shape = TensorShape::s32x32b, .registers = 128, .halves = true}, 31, 127),
            (TensorAddress{31, 254}));
}

TEST(TensorLayout, OfProductsPutsEachElementInOneCell) {
  struct Case {
    TensorLayout layout;
    int m, n, ctas;
  };
  for (const Case& c :
       {Case{TensorLayout::a, 256, 64, 2}, Case{TensorLayout::b, 128, 64, 2}, Case{TensorLayout::d, 128, 48, 1},
        Case{TensorLayout::e, 64, 64, 1}, Case{TensorLayout::f, 64, 24, 1}, Case{TensorLayout::g, 32, 64, 1}}) {
    std::set<std::array<int, 3>> seen;
    for (int m = 0; m < c.m; ++m) {
      for (int n = 0; n < c.n; ++n) {
        const TensorCell cell = cell_of(c.layout, m, n, c.n);
        EXPECT_TRUE(seen.insert({cell.cta, cell.lane, cell.column}).second);
        EXPECT_LT(cell.cta, c.ctas);
        bool in_a_region = false;
        for (const TensorRegion& r : regions_of(c.layout, c.n, {0, 0})) {
          in_a_region |= cell.lane >= r.lane && cell.lane < r.lane + r.lanes && cell.column < r.columns;
        }
        EXPECT_TRUE(in_a_region);
      }
    }
  }
  EXPECT_EQ(cell_of(TensorLayout::f, 17, 3, 8).lane, 33);
  EXPECT_EQ(cell_of(TensorLayout::b, 70, 40, 64).lane, 70);  // 70 % 64 + 64 (40 / 32)
}

// --- moves -----------------------------------------------------------------------------------------------------------

// Stores lane * 1000 + register by 32x32b, and loads the same cells by each shape: the cell that a register comes from
// shows.
TEST(TensorMemory, LoadsOfEachShapeReturnTheCellsThatAStoreWrote) {
  struct Case {
    const char* shape;
    int registers;
    const char* more;
  };
  for (const Case& c : {Case{"32x32b.x8", 8, ""}, Case{"16x64b.x4", 4, ""}, Case{"16x128b.x2", 4, ""},
                        Case{"16x256b.x1", 4, ""}, Case{"16x32bx2.x4", 4, ", 4"}}) {
    std::string body;
    for (int i = 0; i < 8; ++i) {
      body += "mad.lo.u32 %r" + std::to_string(10 + i) + ", %r0, 1000, " + std::to_string(i) + ";\n";
    }
    body +=
        "tcgen05.st.sync.aligned.32x32b.x8.b32 [%r1], " + list_of("%r", 10, 8) + ";\ntcgen05.wait::st.sync.aligned;\n";
    body += std::string("tcgen05.ld.sync.aligned.") + c.shape + ".b32 " + list_of("%r", 30, c.registers) + ", [%r1]" +
            c.more + ";\ntcgen05.wait::ld.sync.aligned;\nmad.wide.u32 %rd2, %r0, " + std::to_string(4 * c.registers) +
            ", %rd0;\n";
    for (int i = 0; i < c.registers; ++i) {
      body += "st.global.u32 [%rd2+" + std::to_string(4 * i) + "], %r" + std::to_string(30 + i) + ";\n";
    }
    const Ran ran = run_100(in_memory(32, body), static_cast<std::size_t>(32 * 4 * c.registers));
    EXPECT_THAT(ran.messages, IsEmpty()) << c.shape;
    const std::string name = std::string(c.shape).substr(0, std::string(c.shape).find('.'));
    for (int r = 0; r < (name == "32x32b" ? 32 : 16); ++r) {
      for (int w = 0; w < 8; ++w) {
        auto [thread, reg] = holder(name, r, w);
        if (name == "16x32bx2") thread = r + 16 * (w / 4), reg = w % 4;
        EXPECT_EQ(ran.word(static_cast<std::size_t>(thread * c.registers + reg)),
                  static_cast<std::uint32_t>(r * 1000 + w))
            << c.shape << " row " << r << " word " << w;
      }
    }
  }
}

TEST(TensorMemory, PacksTheLowHalvesOfTwoColumns) {
  const Ran ran = run_100(in_memory(32, R"(
    mov.u32 %r10, 0x11112222; mov.u32 %r11, 0x33334444;
    tcgen05.st.sync.aligned.32x32b.x2.b32 [%r1], {%r10, %r11};
    tcgen05.wait::st.sync.aligned;
    tcgen05.ld.sync.aligned.32x32b.x1.pack::16b.b32 {%r12}, [%r1];
    mov.u32 %r13, 0xaaaabbbb;
    tcgen05.wait::ld.sync.aligned;
    tcgen05.st.sync.aligned.32x32b.x1.unpack::16b.b32 [%r1], {%r13};
    tcgen05.wait::st.sync.aligned;
    tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r14, %r15}, [%r1];
    tcgen05.wait::ld.sync.aligned;
    st.global.u32 [%rd0], %r12; st.global.u32 [%rd0+4], %r14; st.global.u32 [%rd0+8], %r15;
  )"));
  EXPECT_THAT(ran.messages, IsEmpty());
  EXPECT_EQ(ran.word(0), 0x44442222u);
  EXPECT_EQ(ran.word(1) & 0xffff, 0xbbbbu);
  EXPECT_EQ(ran.word(2) & 0xffff, 0xaaaau);
}

// --- allocation ------------------------------------------------------------------------------------------------------

TEST(TensorMemory, AllocatesTheLowestAlignedColumns) {
  const Ran ran = run_100(R"(
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 128;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s+4], 64;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s+8], 64;
    ld.shared.v2.u32 {%r1, %r2}, [s]; ld.shared.u32 %r3, [s+8];
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 64;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s+12], 32;
    ld.shared.u32 %r4, [s+12];
    st.global.v4.u32 [%rd0], {%r1, %r2, %r3, %r4};
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 128;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, 32;
  )");
  EXPECT_THAT(ran.messages, IsEmpty());
  EXPECT_EQ(ran.word(0), 0u);
  EXPECT_EQ(ran.word(1), 128u);
  EXPECT_EQ(ran.word(2), 192u);
  EXPECT_EQ(ran.word(3), 128u);
}

std::string message_of(const std::string& body, std::int64_t threads = 32) {
  const Ran ran = run_100(body, 64, threads);
  return ran.messages.empty() ? "" : ran.messages[0];
}

TEST(TensorMemory, ReportsWrongAllocations) {
  const std::string alloc = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], ";
  const std::string free = "ld.shared.u32 %r1, [s]; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, ";
  EXPECT_EQ(message_of("mov.u32 %r2, 48; " + alloc + "%r2;"),
            "TENSOR_ALLOC tcgen05.alloc of 48 columns: a power of two from 32 to 512");
  EXPECT_THAT(message_of(alloc + "32; " + alloc + "64;"),
              HasSubstr("64 columns after one of 32: a later allocation must not be larger"));
  EXPECT_THAT(message_of("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" + alloc + "32;"),
              HasSubstr("TENSOR_ALLOC tcgen05.alloc after the CTA gave up its right to allocate"));
  EXPECT_EQ(message_of(alloc + "64;"), "TENSOR_ALLOC the CTA ended with columns 0 to 63 of tensor memory allocated");
  EXPECT_THAT(message_of(alloc + "64; " + free + "32;"),
              HasSubstr("32 columns at 0x00000000 (lane 0, column 0) frees no"));
  EXPECT_THAT(message_of(alloc + "64; " + free + "64; " + free + "64;"),
              HasSubstr("frees no allocation: it was freed by tcgen05.dealloc at one.ptx"));
  EXPECT_THAT(message_of(alloc + "512; " + alloc + "512;"), HasSubstr("DEADLOCK"));
}

TEST(TensorMemory, ReportsCellsThatAWarpMayNotAccess) {
  const std::string load = "tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r4, %r5, %r6, %r7}, ";
  EXPECT_THAT(message_of(in_memory(32, load + "[%r1+30];")),
              HasSubstr("TENSOR_ACCESS tcgen05.ld reads columns 30 to 33, and column 32 is not allocated: allocated: "
                        "columns 0 to 31"));
  EXPECT_THAT(
      message_of(in_memory(32, "add.u32 %r2, %r1, 0x200000; " + load + "[%r2];")),
      HasSubstr("TENSOR_ACCESS tcgen05.ld of warp 0 reads lanes 32 to 63, and this warp accesses lanes 0 to 31"));
  EXPECT_THAT(message_of(in_memory(32, "tcgen05.ld.sync.aligned.16x64b.x1.b32 {%r4}, [%r1+0x80000];")),
              HasSubstr("lanes 8 to 23, and this warp accesses lanes 0 to 31, 16 from a multiple of 16 on"));
  EXPECT_THAT(message_of(with(kAlloc, "%COLUMNS%", "32") + with(kFree, "%COLUMNS%", "32") + load + "[%r1];"),
              HasSubstr("column 0 is not allocated: it was freed by tcgen05.dealloc"));
  EXPECT_THAT(message_of(in_memory(32, "setp.lt.u32 %p0, %r0, 7; @%p0 add.u32 %r1, %r1, 4;" + load + "[%r1];")),
              HasSubstr("lanes of warp 0 have different values of the address in tensor memory"));
}

}  // namespace
}  // namespace kvscope::ptx::test::tensor_memory_test
