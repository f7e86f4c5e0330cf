#include "core/smem/banks.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "tests/property.h"

namespace kvscope::banks_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

template <class Error, class F>
std::string message_of(F f) {
  try {
    (void)f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no such error";
}

SharedAccess access_of(int lanes, int width, const std::function<std::int64_t(int)>& address) {
  SharedAccess access{width, {}};
  for (int lane = 0; lane < lanes; ++lane) access.addresses.emplace_back(address(lane));
  return access;
}

std::vector<int> lanes_of(int from, int to) {
  std::vector<int> lanes;
  for (int lane = from; lane < to; ++lane) lanes.push_back(lane);
  return lanes;
}

std::vector<int> joined(std::vector<int> a, const std::vector<int>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// One row of the table of profiles: banks, phases, lanes per phase where they are consecutive.
TEST(BankProfiles, HaveTheBanksAndPhasesOfTheTable) {
  const auto expect_consecutive = [](const BankProfile& p, int banks, int phases, int lanes) {
    EXPECT_EQ(p.banks, banks) << p.name;
    ASSERT_EQ(p.phases.size(), static_cast<std::size_t>(phases)) << p.name;
    for (int i = 0; i < phases; ++i) {
      EXPECT_EQ(p.phases[static_cast<std::size_t>(i)], lanes_of(i * lanes, (i + 1) * lanes))
          << p.name << " phase " << i;
    }
  };
  for (const auto op : {SharedOp::read, SharedOp::write}) {
    for (const int narrow : {1, 2, 4}) {
      expect_consecutive(bank_profile(SharedTarget::gfx950, op, narrow), 64, 1, 64);
      expect_consecutive(bank_profile(SharedTarget::gfx942, op, narrow), 32, 2, 32);
      expect_consecutive(bank_profile(SharedTarget::nvidia, op, narrow), 32, 1, 32);
    }
    expect_consecutive(bank_profile(SharedTarget::gfx950, op, 8), 64, 2, 32);
    expect_consecutive(bank_profile(SharedTarget::gfx942, op, 8), 32, 4, 16);
    expect_consecutive(bank_profile(SharedTarget::nvidia, op, 8), 32, 2, 16);
    expect_consecutive(bank_profile(SharedTarget::nvidia, op, 16), 32, 4, 8);
  }
  expect_consecutive(bank_profile(SharedTarget::gfx950, SharedOp::write, 16), 64, 4, 16);
  expect_consecutive(bank_profile(SharedTarget::gfx942, SharedOp::write, 16), 32, 8, 8);
  for (const int matrices : {1, 2, 4}) {
    expect_consecutive(bank_profile(SharedTarget::nvidia, SharedOp::ldmatrix, 16, matrices), 32, matrices, 8);
  }
  EXPECT_EQ(bank_profile(SharedTarget::nvidia, SharedOp::ldmatrix, 16, 2).name, "nvidia, ldmatrix.x2");
  EXPECT_EQ(bank_profile(SharedTarget::gfx950, SharedOp::read, 2).lanes, 64);
  EXPECT_EQ(bank_profile(SharedTarget::nvidia, SharedOp::read, 2).lanes, 32);
}

// The measured phases of AMD's 128-bit reads are not consecutive lanes, so a swizzle that suits one machine may not
// suit another.
TEST(BankProfiles, ServeAmds128BitReadsInTheMeasuredOrder) {
  const auto four = [](int a, int b) { return joined(lanes_of(a, a + 4), lanes_of(b, b + 4)); };
  EXPECT_THAT(bank_profile(SharedTarget::gfx942, SharedOp::read, 16).phases,
              ElementsAre(four(0, 20), four(4, 16), four(8, 28), four(12, 24), four(32, 52), four(36, 48), four(40, 60),
                          four(44, 56)));
  EXPECT_THAT(bank_profile(SharedTarget::gfx950, SharedOp::read, 16).phases,
              ElementsAre(joined(joined(four(0, 12), lanes_of(20, 24)), lanes_of(24, 28)),
                          joined(joined(four(32, 44), lanes_of(52, 56)), lanes_of(56, 60)),
                          joined(joined(four(4, 8), lanes_of(16, 20)), lanes_of(28, 32)),
                          joined(joined(four(36, 40), lanes_of(48, 52)), lanes_of(60, 64))));
}

TEST(BankProfiles, RejectWhatNoInstructionDoes) {
  EXPECT_EQ(message_of<GeometryError>([] { return bank_profile(SharedTarget::gfx950, SharedOp::read, 12); }),
            "bank profile rejected: width: 12 B a lane is not one of 1, 2, 4, 8, 16");
  EXPECT_EQ(message_of<GeometryError>([] { return bank_profile(SharedTarget::nvidia, SharedOp::ldmatrix, 8, 3); }),
            "bank profile of ldmatrix rejected, 2 faults:\n"
            "  width: 8 B: a row of a matrix is 16 B: use 16\n"
            "  matrices: 3 is not one of 1, 2, 4");
  EXPECT_EQ(message_of<UnsupportedError>([] { return bank_profile(SharedTarget::gfx942, SharedOp::ldmatrix, 16); }),
            "ldmatrix is an instruction of NVIDIA: use a 128-bit read on gfx942 and gfx950");
}

// Wavefronts and their minimum, as counted on NVIDIA hardware, of ordinary accesses of a warp.
TEST(BankReports, CountTheWavefrontsOfPlainAccesses) {
  struct Case {
    int width;
    std::function<std::int64_t(int)> address;
    int cycles, ideal;
  };
  const std::vector<Case> cases = {
      {4, [](int l) { return l * 4; }, 1, 1},     {4, [](int l) { return l * 8; }, 2, 1},
      {4, [](int l) { return l * 12; }, 1, 1},    {4, [](int l) { return l * 132; }, 1, 1},
      {4, [](int l) { return l * 128; }, 32, 1},  {4, [](int) { return 64; }, 1, 1},
      {1, [](int l) { return l; }, 1, 1},         {2, [](int l) { return l * 2; }, 1, 1},
      {2, [](int l) { return l * 66; }, 1, 1},    {1, [](int l) { return l * 128; }, 32, 1},
      {16, [](int l) { return l * 16; }, 4, 4},   {16, [](int l) { return l * 32; }, 8, 4},
      {16, [](int l) { return l * 128; }, 32, 4}, {16, [](int l) { return l * 144; }, 4, 4},
      {8, [](int l) { return l * 8; }, 2, 2},     {8, [](int l) { return l * 16; }, 4, 2},
      {8, [](int) { return 8; }, 2, 2},           {8, [](int l) { return l / 4 * 512 + l % 4 * 8; }, 8, 2},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    const BankReport report =
        bank_report(bank_profile(SharedTarget::nvidia, SharedOp::read, c.width), access_of(32, c.width, c.address));
    EXPECT_EQ(report.cycles(), c.cycles) << "case " << i;
    EXPECT_EQ(report.ideal(), c.ideal) << "case " << i;
    EXPECT_EQ(report.extra(), c.cycles - c.ideal) << "case " << i;
  }
  // Lanes 16..31 are inactive; with them, the stride of 8 costs two wavefronts.
  SharedAccess half = access_of(32, 4, [](int l) { return l * 8; });
  for (std::size_t lane = 16; lane < 32; ++lane) half.addresses[lane].reset();
  EXPECT_EQ(bank_report(bank_profile(SharedTarget::nvidia, SharedOp::read, 4), half).cycles(), 1);
}

// A phase without active lanes takes no cycle and is not counted in the minimum.
TEST(BankReports, APhaseWithoutLanesCostsNothing) {
  SharedAccess access = access_of(32, 16, [](int l) { return l * 16; });
  for (std::size_t lane = 8; lane < 16; ++lane) access.addresses[lane].reset();
  const BankReport report = bank_report(bank_profile(SharedTarget::nvidia, SharedOp::read, 16), access);
  EXPECT_THAT(report.degrees, ElementsAre(1, 0, 1, 1));
  EXPECT_EQ(report.ideal(), 3);
  EXPECT_EQ(report.extra(), 0);
}

// .x2 uses the addresses of lanes 0..15; those of other lanes are ignored, even if they would conflict.
TEST(BankReports, LdmatrixIgnoresTheAddressesOfOtherLanes) {
  const SharedAccess access = access_of(32, 16, [](int l) { return l < 16 ? l * 16 : 0; });
  EXPECT_THAT(bank_report(bank_profile(SharedTarget::nvidia, SharedOp::ldmatrix, 16, 2), access).degrees,
              ElementsAre(1, 1));
}

TEST(BankReports, NameTheWordsOfABankAndTheLanesThatWantEach) {
  SharedAccess access = access_of(32, 4, [](int l) { return l * 4; });
  access.addresses[0] = 12;
  access.addresses[1] = 128 + 12;
  access.addresses[4] = 12;
  const BankReport report = bank_report(bank_profile(SharedTarget::nvidia, SharedOp::read, 4), access);
  ASSERT_EQ(report.conflicts.size(), 1u);
  EXPECT_EQ(report.conflicts[0].bank, 3);
  EXPECT_THAT(report.conflicts[0].words, ElementsAre(12, 140));
  EXPECT_THAT(report.conflicts[0].lanes, ElementsAre(ElementsAre(0, 3, 4), ElementsAre(1)));
}

TEST(BankReports, NameEveryFaultOfAnAccess) {
  const BankProfile profile = bank_profile(SharedTarget::nvidia, SharedOp::read, 16);
  SharedAccess access = access_of(31, 16, [](int l) { return l * 16; });
  access.addresses[2] = 40;
  access.addresses[5] = -16;
  EXPECT_EQ(message_of<GeometryError>([&] { return bank_report(profile, access); }),
            "access under 'nvidia, 128-bit' rejected, 3 faults:\n"
            "  addresses: 31 for 32 lanes: give every lane one, or none to a lane that takes no part\n"
            "  lane 2: address 40 is not a multiple of 16 B\n"
            "  lane 5: address -16 is below 0");
  EXPECT_EQ(
      message_of<GeometryError>([&] { return bank_report(profile, access_of(32, 8, [](int l) { return l * 8; })); }),
      "access under 'nvidia, 128-bit' rejected: width: 8 B a lane, but the phases are those of 16 B: use "
      "bank_profile of width 8");
  EXPECT_EQ(
      message_of<GeometryError>([&] { return bank_report(profile, access_of(32, 3, [](int l) { return l * 3; })); }),
      "access under 'nvidia, 128-bit' rejected: width: 3 B is not one of 1, 2, 4, 8, 16");
  const BankProfile own{"own", 0, 2, {{0, 1}, {1, 2}}};
  EXPECT_EQ(message_of<GeometryError>([&] { return bank_report(own, access_of(2, 4, [](int l) { return l * 4; })); }),
            "access under 'own' rejected, 3 faults:\n"
            "  banks: 0 is below 1\n"
            "  phases: lane 1 is served twice\n"
            "  phases: lane 2 is outside [0, 2)");
}

// Cycles computed in another way: the words of a phase sorted and counted bank by bank, for random addresses of every
// profile.
TEST(BankReports, EqualACountOverSets) {
  EXPECT_TRUE(prop::check("degree = most distinct words in a bank", [] {
    const auto target = prop::one_of(SharedTarget::gfx942, SharedTarget::gfx950, SharedTarget::nvidia);
    const int width = 1 << prop::in_range(0, 5);
    const BankProfile profile = bank_profile(target, prop::one_of(SharedOp::read, SharedOp::write), width);
    SharedAccess access{width, {}};
    for (int lane = 0; lane < profile.lanes; ++lane) {
      const bool active = prop::in_range(0, 8) != 0;
      access.addresses.push_back(active ? std::optional<std::int64_t>(width * prop::uniform<std::int64_t>(0, 300))
                                        : std::nullopt);
    }
    const BankReport report = bank_report(profile, access);
    RC_ASSERT(report.degrees.size() == profile.phases.size());
    std::size_t conflicts = 0;
    for (std::size_t phase = 0; phase < profile.phases.size(); ++phase) {
      std::map<std::int64_t, std::set<std::int64_t>> words;
      for (const int lane : profile.phases[phase]) {
        const auto& address = access.addresses[static_cast<std::size_t>(lane)];
        if (!address) continue;
        for (std::int64_t byte = *address; byte < *address + width; ++byte)
          words[byte / 4 % profile.banks].insert(byte / 4);
      }
      int degree = 0;
      for (const auto& entry : words) {
        degree = std::max(degree, static_cast<int>(entry.second.size()));
        conflicts += entry.second.size() > 1 ? 1 : 0;
      }
      RC_ASSERT(report.degrees[phase] == degree);
    }
    RC_ASSERT(report.conflicts.size() == conflicts);
    for (const BankConflict& conflict : report.conflicts) {
      RC_ASSERT(conflict.words.size() == conflict.lanes.size());
      for (const std::int64_t word : conflict.words) RC_ASSERT(word / 4 % profile.banks == conflict.bank);
    }
  }));
}

}  // namespace
}  // namespace kvscope::banks_test
