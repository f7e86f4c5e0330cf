// Debug information that is written here from the DWARF standard, version 4, instead of by a compiler: every form of an
// attribute, every kind of type, and what no compiler writes.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/virtual/text/parameter_layout.h"
#include "tests/gpu/virtual/text/texts.h"

namespace kvscope::ptx::debug_info_test {
namespace {

using Lines = std::vector<std::string>;

std::string le(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}
std::string uleb(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  return out + static_cast<char>(value);
}

// --- an entry and its attributes ---------------------------------------------------------------------------------------

struct Attribute {
  std::uint64_t name, form;
  std::string bytes;
  std::string to = {};  // id of the entry that a reference names
};
struct Entry {
  std::uint64_t tag;
  std::vector<Attribute> attributes;
  std::vector<Entry> children = {};
  std::string id = {};
};

constexpr std::uint64_t kArray = 0x01, kClass = 0x02, kEnumeration = 0x04, kParameter = 0x05, kMember = 0x0d,
                        kPointer = 0x0f, kReference = 0x10, kStruct = 0x13, kSubroutine = 0x15, kTypedef = 0x16,
                        kUnion = 0x17, kInheritance = 0x1c, kRange = 0x21, kBase = 0x24, kConst = 0x26,
                        kFunction = 0x2e, kVolatile = 0x35, kRestrict = 0x37, kRvalue = 0x42;

Attribute name(const std::string& text) {
  return {0x03, 0x08, text + '\0'};
}
Attribute number(std::uint64_t attribute, std::uint64_t value) {
  return {attribute, 0x0f, uleb(value)};
}
Attribute bytes(std::uint64_t value) {
  return number(0x0b, value);
}
Attribute encoding(std::uint64_t value) {
  return number(0x3e, value);
}
Attribute at(std::uint64_t place) {
  return number(0x38, place);
}
Attribute type(const std::string& to) {
  return {0x49, 0x13, "", to};
}
Entry base(const std::string& id, std::uint64_t size, std::uint64_t code) {
  return {kBase, {name(id), bytes(size), encoding(code)}, {}, id};
}
Entry member(const std::string& text, const std::string& to, std::uint64_t place) {
  return {kMember, {name(text), type(to), at(place)}};
}
Entry array(const std::string& id, const std::string& of, const std::vector<std::uint64_t>& counts) {
  Entry out{kArray, {type(of)}, {}, id};
  for (const std::uint64_t count : counts) out.children.push_back({kRange, {number(0x37, count)}});
  return out;
}
// The kernel "k" with one parameter.
Entry kernel_of(const std::string& to) {
  return {kFunction, {name("k")}, {{kParameter, {name("p"), type(to)}}}};
}

// --- a file ------------------------------------------------------------------------------------------------------------

class Unit {
 public:
  explicit Unit(const std::vector<Entry>& entries) {
    for (int pass = 0; pass < 2; ++pass) {  // the first finds the places of the entries
      code_ = 0;
      info_.assign(11, '\0');
      abbreviations_.clear();
      for (const Entry& entry : entries) put(entry);
      info_ += '\0';
      abbreviations_ += '\0';
    }
    const std::string body = le(4, 2) + le(0, 4) + le(8, 1);
    info_.replace(0, 11, le(info_.size() - 4, 4) + body);
  }
  std::string info() const { return info_; }
  std::string abbreviations() const { return abbreviations_; }

 private:
  void put(const Entry& entry) {
    ++code_;
    if (!entry.id.empty()) places_[entry.id] = info_.size();
    info_ += uleb(code_);
    abbreviations_ += uleb(code_) + uleb(entry.tag) + (entry.children.empty() ? '\0' : '\1');
    for (const Attribute& a : entry.attributes) {
      abbreviations_ += uleb(a.name) + uleb(a.form);
      info_ += a.to.empty() ? a.bytes : reference(a.form, places_[a.to]);
    }
    abbreviations_ += std::string(2, '\0');
    for (const Entry& child : entry.children) put(child);
    if (!entry.children.empty()) info_ += '\0';
  }
  static std::string reference(std::uint64_t form, std::uint64_t place) {
    switch (form) {
      case 0x11:
        return le(place, 1);
      case 0x12:
        return le(place, 2);
      case 0x14:
        return le(place, 8);
      case 0x15:  // two bytes whatever the number, so that both passes agree
        return {static_cast<char>((place & 0x7f) | 0x80), static_cast<char>(place >> 7)};
      default:
        return le(place, 4);
    }
  }
  std::uint64_t code_ = 0;
  std::string info_, abbreviations_;
  std::map<std::string, std::uint64_t> places_;
};

std::string section(const std::string& called, const std::string& bytes) {
  std::string out = "\n.section " + called + " {\n";
  for (const char c : bytes) out += ".b8 " + std::to_string(static_cast<unsigned char>(c)) + "\n";
  return out + "}\n";
}

// "path offset bytes type", " pointer", and the type's name after "=".
Lines layout_of(const std::string& info, const std::string& abbreviations, const std::string& strings, int size) {
  const std::string kernel_text = ".visible .entry k(.param .align 8 .b8 x[" + std::to_string(size) + "]) { ret; }\n";
  const Module module = parse_items(kernel_text + section(".debug_abbrev", abbreviations) +
                                    section(".debug_info", info) + section(".debug_str", strings));
  const auto layouts = layouts_from_debug_info(module, kernel(module));
  if (layouts.empty()) return {"none"};
  Lines out{layouts[0].name + " " + layouts[0].type_name};
  for (const ParameterField& f : layouts[0].fields) {
    out.push_back(f.path + " " + std::to_string(f.offset) + " " + std::to_string(f.bytes) + " " +
                  std::string(ptx::name(f.type)) + (f.pointer ? " pointer" : "") + " = " + f.type_name);
  }
  return out;
}
Lines layout_of(const std::vector<Entry>& entries, int size, const std::string& strings = "") {
  const Unit unit(entries);
  return layout_of(unit.info(), unit.abbreviations(), strings, size);
}
const Lines kNone{"none"};

// --- tests -------------------------------------------------------------------------------------------------------------

TEST(DebugForms, EveryFormOfAReferenceNamesTheSameEntry) {
  for (const std::uint64_t form : {0x10, 0x11, 0x12, 0x13, 0x14, 0x15}) {
    const std::vector<Entry> entries{base("int", 4, 5),
                                     {kFunction, {name("k")}, {{kParameter, {name("p"), {0x49, form, "", "int"}}}}}};
    EXPECT_EQ(layout_of(entries, 4), (Lines{"p int", " 0 4 s32 = int"})) << form;
  }
}

TEST(DebugForms, EveryFormOfANumberIsRead) {
  const std::pair<std::uint64_t, std::string> forms[] = {{0x0b, le(4, 1)},
                                                         {0x05, le(4, 2)},
                                                         {0x06, le(4, 4)},
                                                         {0x07, le(4, 8)},
                                                         {0x01, le(4, 8)},
                                                         {0x17, le(4, 4)},
                                                         {0x0c, le(4, 1)},
                                                         {0x0d, "\x04"},
                                                         {0x0f, "\x04"},
                                                         {0x0d, "\x84\x80" + le(0, 1)},
                                                         {0x0f, "\x84\x80" + le(0, 1)}};
  for (const auto& [form, value] : forms) {
    const Entry number{kBase, {name("int"), {0x0b, form, value}, encoding(5)}, {}, "int"};
    EXPECT_EQ(layout_of({number, kernel_of("int")}, 4), (Lines{"p int", " 0 4 s32 = int"})) << form;
  }
  // -4 bytes, in one byte and in two: no size at all, so that the parameter's does not agree.
  for (const std::string& value : {std::string("\x7c"), std::string("\xfc\x7f")}) {
    const Entry number{kBase, {name("int"), {0x0b, 0x0d, value}, encoding(5)}, {}, "int"};
    EXPECT_EQ(layout_of({number, kernel_of("int")}, 4), kNone);
  }
  // A flag that is there by its form alone: 1 byte.
  const Entry flag{kBase, {name("c"), {0x0b, 0x19, ""}, encoding(7)}, {}, "c"};
  EXPECT_EQ(layout_of({flag, kernel_of("c")}, 1), (Lines{"p c", " 0 1 u8 = c"}));
}

// A member's place: a number, or a block that adds a constant to the address of the struct.
TEST(DebugForms, EveryFormOfAPlaceIsRead) {
  const std::string block = "\x23" + uleb(200);
  const std::pair<std::uint64_t, std::string> forms[] = {{0x0f, uleb(200)},        {0x0a, le(3, 1) + block},
                                                         {0x03, le(3, 2) + block}, {0x04, le(3, 4) + block},
                                                         {0x09, uleb(3) + block},  {0x18, uleb(3) + block}};
  for (const auto& [form, value] : forms) {
    const Entry record{
        kStruct, {name("S"), bytes(204)}, {{kMember, {name("m"), type("int"), {0x38, form, value}}}}, "S"};
    EXPECT_EQ(layout_of({base("int", 4, 5), record, kernel_of("S")}, 204), (Lines{"p S", "m 200 4 s32 = int"})) << form;
  }
  // An empty block, and one of another operation, give no place; such a member is left out.
  for (const std::string& value : {le(0, 1), "\2\x10\x07" + std::string(), "\1\x23" + std::string()}) {
    const Entry record{kStruct,
                       {name("S"), bytes(4)},
                       {{kMember, {name("m"), type("int"), {0x38, 0x0a, value}}}, member("n", "int", 0)},
                       "S"};
    EXPECT_EQ(layout_of({base("int", 4, 5), record, kernel_of("S")}, 4), (Lines{"p S", "n 0 4 s32 = int"}));
  }
}

TEST(DebugForms, NamesAreInPlaceOrInTheSectionOfStrings) {
  const auto with_name_at = [](std::uint64_t place) {
    return std::vector<Entry>{{kBase, {{0x03, 0x0e, le(place, 4)}, bytes(4), encoding(5)}, {}, "int"},
                              kernel_of("int")};
  };
  const std::string strings("a\0int\0", 6);
  EXPECT_EQ(layout_of(with_name_at(2), 4, strings), (Lines{"p int", " 0 4 s32 = int"}));
  EXPECT_EQ(layout_of(with_name_at(3), 4, strings), (Lines{"p nt", " 0 4 s32 = nt"}));
  EXPECT_EQ(layout_of(with_name_at(6), 4, strings), (Lines{"p unnamed", " 0 4 s32 = unnamed"})) << "past the end";
}

TEST(DebugTypes, NumbersOfEverySizeAndEncoding) {
  const struct {
    std::uint64_t size, encoding;
    const char* type;
  } cases[] = {{1, 5, "s8"},  {2, 5, "s16"}, {4, 5, "s32"}, {8, 5, "s64"}, {1, 6, "s8"}, {1, 7, "u8"},
               {2, 7, "u16"}, {4, 7, "u32"}, {8, 7, "u64"}, {1, 8, "u8"},  {1, 2, "u8"}, {2, 4, "f16"},
               {4, 4, "f32"}, {8, 4, "f64"}, {1, 4, ""},    {16, 5, ""},   {3, 5, ""},   {16, 4, ""}};
  for (const auto& c : cases) {
    EXPECT_EQ(layout_of({base("T", c.size, c.encoding), kernel_of("T")}, static_cast<int>(c.size)),
              (Lines{"p T", " 0 " + std::to_string(c.size) + " " + c.type + " = T"}))
        << c.size << " " << c.encoding;
  }
  const Entry half{kStruct, {name("__half"), bytes(2)}, {}, "h"};
  EXPECT_EQ(layout_of({half, kernel_of("h")}, 2), (Lines{"p __half", " 0 2 f16 = __half"}));
  const Entry brain{kStruct, {name("__nv_bfloat16"), bytes(2)}, {}, "h"};
  EXPECT_EQ(layout_of({brain, kernel_of("h")}, 2), (Lines{"p __nv_bfloat16", " 0 2 bf16 = __nv_bfloat16"}));
  const Entry color{kEnumeration, {name("Color"), bytes(4), encoding(7)}, {}, "e"};
  EXPECT_EQ(layout_of({color, kernel_of("e")}, 4), (Lines{"p Color", " 0 4 u32 = Color"}));
}

TEST(DebugTypes, PointersAndQualifiersAreNamedAsInTheSource) {
  const std::vector<Entry> types{base("int", 4, 5),
                                 {kConst, {type("int")}, {}, "const int"},
                                 {kConst, {}, {}, "const void"},
                                 {kVolatile, {type("int")}, {}, "volatile int"},
                                 {kTypedef, {name("Index"), type("int")}, {}, "Index"},
                                 {kPointer, {type("const int")}, {}, "const int*"},
                                 {kPointer, {type("int")}, {}, "int*"},
                                 {kPointer, {}, {}, "void*"},
                                 {kPointer, {type("const void")}, {}, "const void*"},
                                 {kReference, {type("int")}, {}, "int&"},
                                 {kRvalue, {type("int")}, {}, "int&&"},
                                 {kRestrict, {type("int*")}, {}, "restrict"},
                                 {kPointer, {type("array")}, {}, "array*"},
                                 array("array", "int", {2})};
  const auto of = [&](const std::string& to) {
    std::vector<Entry> entries = types;
    entries.push_back(kernel_of(to));
    return layout_of(entries, 8);
  };
  EXPECT_EQ(of("const int*"), (Lines{"p const int*", " 0 8 u64 pointer = const int*"}));
  EXPECT_EQ(of("void*"), (Lines{"p void*", " 0 8 u64 pointer = void*"}));
  EXPECT_EQ(of("const void*"), (Lines{"p const void*", " 0 8 u64 pointer = const void*"}));
  EXPECT_EQ(of("int&"), (Lines{"p int&", " 0 8 u64 pointer = int&"}));
  EXPECT_EQ(of("int&&"), (Lines{"p int&", " 0 8 u64 pointer = int&"}));
  EXPECT_EQ(of("restrict"), (Lines{"p int*", " 0 8 u64 pointer = int*"}));
  EXPECT_EQ(of("array*"), (Lines{"p int[]*", " 0 8 u64 pointer = int[]*"}));
  const auto number = [&](const std::string& to) {
    std::vector<Entry> entries = types;
    entries.push_back(kernel_of(to));
    return layout_of(entries, 4);
  };
  EXPECT_EQ(number("const int"), (Lines{"p const int", " 0 4 s32 = const int"}));
  EXPECT_EQ(number("volatile int"), (Lines{"p int", " 0 4 s32 = int"}));
  EXPECT_EQ(number("Index"), (Lines{"p Index", " 0 4 s32 = Index"}));
}

TEST(DebugTypes, ArraysHaveACountOrAnUpperBound) {
  const auto with_range = [](const std::vector<Attribute>& range, int size) {
    const Entry array{kArray, {type("int")}, {{kRange, range}, {kMember, {}}}, "a"};
    return layout_of({base("int", 4, 5), array, kernel_of("a")}, size);
  };
  const Lines two{"p int[]", "[0] 0 4 s32 = int", "[1] 4 4 s32 = int"};
  EXPECT_EQ(with_range({number(0x37, 2)}, 8), two);
  EXPECT_EQ(with_range({number(0x2f, 1)}, 8), two);
  EXPECT_EQ(with_range({number(0x37, 2), number(0x2f, 6)}, 8), two) << "a count is exact";
  EXPECT_EQ(with_range({{0x2f, 0x0a, le(0, 1)}}, 8), kNone) << "no number";
  EXPECT_EQ(layout_of({base("int", 4, 5), array("a", "int", {2, 2}), kernel_of("a")}, 16),
            (Lines{"p int[]", "[0][0] 0 4 s32 = int", "[0][1] 4 4 s32 = int", "[1][0] 8 4 s32 = int",
                   "[1][1] 12 4 s32 = int"}));
}

// Members in the order of their places; static members, nested types and members without a type are none.
TEST(DebugTypes, RecordsHaveTheirMembersAndThoseOfTheirBases) {
  const Entry part{kStruct, {name("Part"), bytes(8)}, {member("x", "int", 0), member("y", "int", 4)}, "Part"};
  const Entry record{kClass,
                     {name("S"), bytes(40)},
                     {member("last", "int", 36),
                      {kInheritance, {type("Part"), at(0)}},
                      member("__b_4Part", "Part", 8),
                      member("part", "Part", 16),
                      {kMember, {name("count"), type("int")}},  // static
                      {kMember, {name("untyped"), at(0)}},
                      {kTypedef, {name("Inner"), type("int")}},
                      {kMember, {type("Either"), at(24)}},  // an unnamed union
                      {kMember, {name("bits"), type("int"), at(28), number(0x0d, 3)}},
                      {kMember, {name("more"), type("int"), number(0x6b, 5), at(32)}}},
                     "S"};
  const Entry either{
      kUnion, {bytes(4)}, {{kMember, {name("i"), type("int")}}, {kMember, {name("f"), type("float")}}}, "Either"};
  EXPECT_EQ(layout_of({base("int", 4, 5), base("float", 4, 4), part, either, record, kernel_of("S")}, 40),
            (Lines{"p S", "x 0 4 s32 = int", "y 4 4 s32 = int", "x 8 4 s32 = int", "y 12 4 s32 = int",
                   "part.x 16 4 s32 = int", "part.y 20 4 s32 = int", "i 24 4 s32 = int", "f 24 4 f32 = float",
                   "bits 28 4  = int", "more 32 4  = int", "last 36 4 s32 = int"}));
}

// A function is known by its name, by its linkage name, or by those of the entry that it continues.
TEST(DebugKernels, AreFoundByEachOfTheirNames) {
  const Entry number = base("int", 4, 5);
  const std::vector<Entry> parameters{{kParameter, {name("p"), type("int")}}};
  const Lines found{"p int", " 0 4 s32 = int"};
  const auto with = [&](std::vector<Attribute> attributes, std::vector<Entry> before = {}) {
    std::vector<Entry> entries{number};
    entries.insert(entries.end(), before.begin(), before.end());
    entries.push_back({kFunction, std::move(attributes), parameters});
    return layout_of(entries, 4);
  };
  EXPECT_EQ(with({name("k")}), found);
  EXPECT_EQ(with({name("other"), {0x6e, 0x08, std::string("k\0", 2)}}), found);
  EXPECT_EQ(with({name("other"), {0x2007, 0x08, std::string("k\0", 2)}}), found);
  EXPECT_EQ(with({name("other")}), kNone);
  const Entry declared{kFunction, {name("k")}, {}, "declared"}, other{kFunction, {name("other")}, {}, "declared"};
  EXPECT_EQ(with({{0x47, 0x13, "", "declared"}}, {declared}), found);
  EXPECT_EQ(with({{0x31, 0x13, "", "declared"}}, {declared}), found);
  EXPECT_EQ(with({{0x31, 0x13, "", "declared"}}, {other}), kNone);
  EXPECT_EQ(with({{0x31, 0x0f, uleb(11)}}, {declared}), kNone) << "a number is no reference";
  EXPECT_EQ(with({{0x31, 0x10, le(9999, 4)}}, {declared}), kNone) << "an entry that is not there";

  // The parameter of a function that continues another one has its name and type there.
  const Entry kept{kFunction, {name("f")}, {{kParameter, {name("p"), type("int")}, {}, "kept"}}};
  const auto parameter = [&](std::vector<Attribute> attributes) {
    return layout_of({number,
                      base("float", 4, 4),
                      kept,
                      {kFunction, {name("k")}, {{kTypedef, {}}, {kParameter, std::move(attributes)}}}},
                     4);
  };
  EXPECT_EQ(parameter({{0x31, 0x13, "", "kept"}}), found);
  EXPECT_EQ(parameter({{0x31, 0x13, "", "kept"}, name("mine")}), (Lines{"mine int", " 0 4 s32 = int"}));
  EXPECT_EQ(parameter({{0x31, 0x13, "", "kept"}, type("float")}), (Lines{"p float", " 0 4 f32 = float"}));
  // Another count of parameters, or another size, is another kernel's.
  EXPECT_EQ(layout_of({number, {kFunction, {name("k")}}}, 4), kNone);
  EXPECT_EQ(with({name("k")}), found);
  EXPECT_EQ(layout_of({number, kernel_of("int")}, 8), kNone);
}

// Each gives no layout, in bounded time: one fault in otherwise complete information.
TEST(DebugDamage, GivesNoLayout) {
  const Unit good({base("int", 4, 5), kernel_of("int")});
  const Lines found{"p int", " 0 4 s32 = int"};
  const auto with = [&](std::size_t place, const std::string& bytes) {
    std::string info = good.info();
    info.replace(place, bytes.size(), bytes);
    return layout_of(info, good.abbreviations(), "", 4);
  };
  const std::size_t size = good.info().size();
  ASSERT_EQ(with(0, ""), found);
  for (const int version : {2, 3, 4}) EXPECT_EQ(with(4, le(static_cast<std::uint64_t>(version), 2)), found);
  for (const int version : {0, 1, 5}) EXPECT_EQ(with(4, le(static_cast<std::uint64_t>(version), 2)), kNone);
  EXPECT_EQ(with(0, le(0, 4)), kNone) << "a unit without bytes";
  EXPECT_EQ(with(0, le(size - 3, 4)), kNone) << "a unit that is longer than the section";
  EXPECT_EQ(with(6, le(9999, 4)), kNone) << "abbreviations past their section";
  EXPECT_EQ(with(10, le(4, 1)), kNone) << "addresses of 4 bytes";
  EXPECT_EQ(with(11, le(0x7f, 1)), kNone) << "an abbreviation that is not there";
  EXPECT_EQ(with(11, std::string(2, '\0')), kNone) << "ends of lists that did not begin";
  EXPECT_EQ(layout_of(good.info().substr(0, 6), good.abbreviations(), "", 4), kNone);
  EXPECT_EQ(layout_of(good.info(), good.abbreviations().substr(0, 3), "", 4), kNone);

  const auto of = [](const std::string& to, std::vector<Entry> entries, int bytes = 4) {
    entries.insert(entries.begin(), base("int", 4, 5));
    entries.push_back(kernel_of(to));
    return layout_of(entries, bytes);
  };
  const auto number_as = [&](std::uint64_t form, const std::string& bytes) {
    return of("T", {{kBase, {name("T"), {0x0b, form, bytes}}, {}, "T"}});
  };
  EXPECT_EQ(number_as(0x16, ""), kNone) << "an indirect form";
  EXPECT_EQ(number_as(0x0f, std::string(10, '\x80')), kNone) << "a number of more than 64 bits";
  EXPECT_EQ(number_as(0x0d, std::string(10, '\x80')), kNone);
  EXPECT_EQ(number_as(0x04, le(0xffffffff, 4) + "\x10"), kNone) << "a block past the section";
  EXPECT_EQ(number_as(0x0a, "\2\x23\xff\x01"), kNone) << "a number past its block";
  const Unit named({base("int", 4, 5), kernel_of("int"), {kBase, {{0x03, 0x08, "no end"}}}});
  std::string endless = named.info();
  ASSERT_EQ(layout_of(endless, named.abbreviations(), "", 4), found);
  endless.back() = 'x';
  EXPECT_EQ(layout_of(endless, named.abbreviations(), "", 4), kNone) << "a text without an end";
  EXPECT_EQ(of("T", {{kSubroutine, {name("T"), bytes(4)}, {}, "T"}}), kNone) << "a function by value";
  EXPECT_EQ(of("T", {{kTypedef, {name("T")}, {}, "T"}}), kNone) << "a name of no type";
  EXPECT_EQ(of("T", {{kTypedef, {name("T"), type("T")}, {}, "T"}}), kNone) << "a name of itself";
  EXPECT_EQ(of("T", {{kPointer, {type("T")}, {}, "T"}}, 8), kNone) << "a pointer to itself";
  EXPECT_EQ(of("T", {{kStruct, {bytes(4)}, {member("m", "T", 0)}, "T"}}), kNone) << "a struct in itself";
  EXPECT_EQ(of("T", {array("T", "T", {1})}), kNone) << "an array of itself";
  EXPECT_EQ(of("T", {array("T", "int", {65537})}), kNone) << "more elements than a kernel can have";
  EXPECT_EQ(of("T", {array("T", "int", {~std::uint64_t{0}})}), kNone) << "-1 elements";
  EXPECT_EQ(of("T", {array("T", "int", {65536, 65536})}), kNone) << "2^34 bytes";
  EXPECT_EQ(of("T", {array("T", "int", {256, 257})}), kNone) << "65792 fields";
}

// Values are written at the places of fields: a place outside of the parameter would be another object's memory.
TEST(DebugDamage, AFieldOutsideOfItsParameterIsNone) {
  const auto of = [](const std::string& form, const std::string& value) {
    const Entry record{kStruct,
                       {name("S"), bytes(8)},
                       {{kMember, {name("m"), type("int"), {0x38, form == "signed" ? 0x0dU : 0x0fU, value}}}},
                       "S"};
    return layout_of({base("int", 4, 5), record, kernel_of("S")}, 8);
  };
  const Lines last{"p S", "m 4 4 s32 = int"};
  EXPECT_EQ(of("signed", "\x04"), last);
  EXPECT_EQ(of("unsigned", uleb(4)), last);
  EXPECT_EQ(of("unsigned", uleb(5)), kNone);
  EXPECT_EQ(of("unsigned", uleb(10'000)), kNone);
  EXPECT_EQ(of("unsigned", uleb(std::uint64_t{1} << 62)), kNone);
  EXPECT_EQ(of("unsigned", uleb(~std::uint64_t{0})), kNone) << "-1";
  EXPECT_EQ(of("signed", "\x7c"), kNone) << "-4";
  EXPECT_EQ(of("signed", "\xfc\x7f"), kNone) << "-4, in two bytes";
  for (const char* called : {"__half", "__nv_bfloat16"}) {  // without a size of its own
    const Entry half{kStruct, {name(called)}, {}, "h"};
    const auto with_place = [&](std::uint64_t place) {
      return layout_of({half, {kStruct, {name("S"), bytes(8)}, {member("m", "h", place)}, "S"}, kernel_of("S")}, 8);
    };
    EXPECT_EQ(with_place(6).size(), 2U);
    EXPECT_EQ(with_place(7), kNone);
    EXPECT_EQ(with_place(8), kNone);
  }
}

// Records without a field: no count of fields ends the walk.
TEST(DebugDamage, RecordsWithoutFieldsEndTheWalkToo) {
  const Entry empty{kStruct, {name("E"), bytes(1)}, {}, "E"};
  EXPECT_EQ(layout_of({empty, array("T", "E", {32768, 32768}), kernel_of("T")}, 16), kNone);
  const Entry nothing{kStruct, {name("E")}, {}, "E"};
  EXPECT_EQ(layout_of({nothing, array("T", "E", {65536, 65536, 65536, 65536}), kernel_of("T")}, 16), kNone);
  std::vector<Entry> doubled{empty};
  std::string inner = "E";
  for (int depth = 0; depth < 60; ++depth) {
    const std::string outer = "S" + std::to_string(depth);
    doubled.push_back({kStruct, {name(outer), bytes(8)}, {member("a", inner, 0), member("b", inner, 4)}, outer});
    inner = outer;
  }
  doubled.push_back(kernel_of(inner));
  EXPECT_EQ(layout_of(doubled, 8), kNone);
}

}  // namespace
}  // namespace kvscope::ptx::debug_info_test
