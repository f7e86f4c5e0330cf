#include "core/golden/bundle/tensor_bytes.h"

#include <gtest/gtest.h>

#include "core/base/errors.h"
#include "core/golden/bundle/tensor.h"

namespace kvscope::golden::tensor_bytes_test {
namespace {

std::vector<std::byte> counted(std::size_t count) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < count; ++i) bytes.push_back(static_cast<std::byte>(i * 37 + 1));
  return bytes;
}

// Lent bytes whose owner can be observed.
struct Lender {
  std::shared_ptr<std::vector<std::byte>> memory = std::make_shared<std::vector<std::byte>>(counted(24));
  [[nodiscard]] TensorBytes lend() const { return TensorBytes::borrow(*memory, memory); }
};

TEST(TensorBytes, BorrowedBytesAreReadInPlace) {
  const Lender lender;
  const TensorBytes bytes = lender.lend();
  EXPECT_TRUE(bytes.borrows());
  EXPECT_EQ(bytes.data(), lender.memory->data());
  EXPECT_EQ(bytes.size(), 24u);
  EXPECT_EQ(bytes[5], (*lender.memory)[5]);
  EXPECT_EQ(bytes, TensorBytes(counted(24))) << "equal by value, whoever owns them";
}

TEST(TensorBytes, WritingCopiesBorrowedBytesAndLeavesTheLendersAsTheyAre) {
  const Lender lender;
  TensorBytes bytes = lender.lend();
  bytes[3] = std::byte{0};
  EXPECT_FALSE(bytes.borrows());
  EXPECT_EQ(*lender.memory, counted(24));
  EXPECT_EQ(bytes.size(), 24u);
  EXPECT_EQ(std::as_const(bytes)[3], std::byte{0});
  EXPECT_EQ(std::as_const(bytes)[4], counted(24)[4]);

  TensorBytes longer = lender.lend();
  longer.resize(30);
  EXPECT_EQ(longer.size(), 30u);
  EXPECT_EQ(std::as_const(longer)[23], counted(24)[23]);
  EXPECT_EQ(std::as_const(longer)[29], std::byte{0});
}

TEST(TensorBytes, CopiesBorrowTooAndEachKeepsTheOwner) {
  auto lender = std::make_unique<Lender>();
  const std::weak_ptr<std::vector<std::byte>> alive = lender->memory;
  auto first = std::make_unique<TensorBytes>(lender->lend());
  const std::byte* const there = std::as_const(*first).data();
  TensorBytes second = *first;
  lender.reset();
  first.reset();
  EXPECT_EQ(std::as_const(second).data(), there);
  EXPECT_FALSE(alive.expired());
  // A pointer taken before a write stays valid: PreparedProblem holds such pointers.
  second[0] = std::byte{9};
  EXPECT_FALSE(alive.expired());
  EXPECT_EQ(*there, counted(1)[0]);
  second = TensorBytes();
  EXPECT_TRUE(alive.expired());
}

TEST(TensorBytes, MovedBytesKeepTheirAddress) {
  TensorBytes own(counted(8));
  const std::byte* const there = std::as_const(own).data();
  const TensorBytes moved = std::move(own);
  EXPECT_EQ(moved.data(), there);

  const Lender lender;
  TensorBytes lent = lender.lend();
  const TensorBytes moved_lent = std::move(lent);
  EXPECT_EQ(moved_lent.data(), lender.memory->data());
}

TEST(TensorBytes, AppendAndAssignReplaceOrExtendBorrowedBytes) {
  const Lender lender;
  const std::vector<std::byte> more = counted(3);
  TensorBytes appended = lender.lend();
  appended.append(more.begin(), more.end());
  EXPECT_EQ(appended.size(), 27u);
  EXPECT_EQ(std::as_const(appended)[25], more[1]);
  TensorBytes assigned = lender.lend();
  assigned.assign(more.begin(), more.end());
  EXPECT_EQ(assigned, TensorBytes(more));
  EXPECT_EQ(lender.memory.use_count(), 2) << "of `appended`: `assigned` has let it go";
  EXPECT_EQ(*lender.memory, counted(24));
}

TEST(TensorBytes, ATensorOfBorrowedBytesHasTheirValues) {
  const auto numbers = std::make_shared<std::vector<float>>(std::vector<float>{1.5F, -2, 3});
  const Tensor tensor{DType::f32, {3}, TensorBytes::borrow(std::as_bytes(std::span(*numbers)), numbers)};
  EXPECT_EQ(values<float>(tensor).data(), numbers->data());
  EXPECT_EQ(tensor, tensor_of<float>({3}, std::span<const float>(*numbers)));
}

// An extent of 0 hides no overflow of bytes that are not there, and no negative extent.
TEST(Tensor, CountsItsElementsAndBytesOrSaysThatItCannot) {
  const auto elements = [](std::vector<std::int64_t> shape) { return element_count(shape); };
  const auto bytes = [](DType dtype, std::vector<std::int64_t> shape) { return byte_count(dtype, shape); };
  constexpr std::int64_t kTwo62 = std::int64_t{1} << 62;
  EXPECT_EQ(elements({}), 1);
  EXPECT_EQ(elements({3, 5}), 15);
  EXPECT_EQ(elements({kTwo62, 0}), 0);
  EXPECT_EQ(elements({kTwo62, 2}), std::nullopt);
  EXPECT_EQ(elements({3, -1}), std::nullopt);
  EXPECT_EQ(elements({0, -1}), std::nullopt);
  EXPECT_EQ(bytes(DType::f64, {3, 5}), 120);
  EXPECT_EQ(bytes(DType::u8, {kTwo62}), kTwo62);
  EXPECT_EQ(bytes(DType::u16, {kTwo62}), std::nullopt);
  EXPECT_EQ(bytes(DType::u8, {-1}), std::nullopt);
}

template <class Error, class Call>
std::string text_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Tensor, OfAShapeThatFitsNoMemoryOrReadAsAnotherWidthIsAnError) {
  EXPECT_EQ(text_of<OverflowError>([] { (void)make_tensor(DType::u16, {std::int64_t{1} << 62}); }),
            "a tensor of shape [4611686018427387904] does not fit in memory");
  EXPECT_EQ(text_of<GeometryError>([] { (void)reinterpret_as(make_tensor(DType::u16, {1}), DType::u8); }),
            "a u16 element has 16 bits and cannot be read as u8, which has 8");
  EXPECT_EQ(reinterpret_as(make_tensor(DType::u16, {1}), DType::bf16).dtype, DType::bf16);
}

}  // namespace
}  // namespace kvscope::golden::tensor_bytes_test
