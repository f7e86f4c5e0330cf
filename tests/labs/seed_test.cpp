#include "apps/labs/seed.h"

#include <gtest/gtest.h>

#include <string>

#include "core/base/errors.h"

namespace kvscope::labs::seed_test {
namespace {

std::string hex(const Digest& digest) {
  return Seed{digest}.text();
}

// The examples of FIPS 180-4 (one and two blocks, none), and a text whose padding needs a block of its own.
TEST(Sha256, GivesTheDigestsOfTheStandard) {
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256(std::string(1000000, 'a'))), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// RFC 4231, test cases 1, 2 and 6: the last key is longer than a block, so it is hashed first.
TEST(HmacSha256, GivesTheDigestsOfTheRfc) {
  EXPECT_EQ(hex(hmac_sha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(hmac_sha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

// "a" in lab "b\nc" and "a\nb" in lab "c" would be one text without a rule about names; every other pair differs.
TEST(Seeds, DifferBetweenStudentsLabsAndPurposes) {
  const Seed seed = grading_seed("secret", "ada", "02_rows");
  EXPECT_NE(seed, grading_seed("secret", "grace", "02_rows"));
  EXPECT_NE(seed, grading_seed("secret", "ada", "03_table"));
  EXPECT_NE(seed, grading_seed("another", "ada", "02_rows"));
  EXPECT_NE(seed, task_seed("ada", "02_rows"));
  EXPECT_NE(seed, public_seed("02_rows"));
  EXPECT_NE(seed.random(1).bits(0), seed.random(2).bits(0));
}

TEST(ParseSeed, ReadsWhatTextWritesAndRejectsAnythingElse) {
  const Seed seed = public_seed("02_rows");
  EXPECT_EQ(parse_seed(seed.text()), seed);
  EXPECT_THROW((void)parse_seed(seed.text().substr(1)), InputError);
  EXPECT_THROW((void)parse_seed("g" + seed.text().substr(1)), InputError);
  EXPECT_THROW((void)parse_seed(""), InputError);
}

}  // namespace
}  // namespace kvscope::labs::seed_test
