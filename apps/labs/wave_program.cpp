#include "apps/labs/wave_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/errors.h"
#include "core/base/nearest_name.h"

namespace kvscope::labs {
namespace {

constexpr std::size_t kMostLines = 400, kMostFaults = 20;
constexpr std::size_t kLongestQuoted = 40;          // characters of a word in a message
constexpr int kDeepest = 40;                        // parentheses in one another
constexpr std::int64_t kLargestNumber = 1'000'000;  // of any value in a program

constexpr std::array<std::string_view, 6> kNames{"i", "tiles", "wave", "waves", "k_copies", "v_copies"};
constexpr std::array<std::string_view, 5> kStatements{"issue", "wait", "barrier", "read", "compute"};
constexpr std::array<std::string_view, 3> kComputed{"scores", "softmax", "output"};
constexpr std::array<std::string_view, 6> kCompared{"<=", ">=", "==", "!=", "<", ">"};

struct LineFault {
  std::string message;
};

// Expressions in the order in which a stack evaluates them: a number, a name, or an operator on the two before it.
struct WaveTerm {
  char what = 'n';  // n number, v name, or an operator + - * / %
  std::int64_t value = 0;
};
using WaveExpr = std::vector<WaveTerm>;

struct WaveComparison {
  WaveExpr left, right;
  std::string_view compared;
};

using WaveValues = std::array<std::int64_t, kNames.size()>;

std::int64_t rounded_down(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

std::int64_t value_of(const WaveExpr& expr, const WaveValues& values) {
  std::vector<std::int64_t> stack;
  for (const WaveTerm& term : expr) {
    if (term.what == 'n') {
      stack.push_back(term.value);
      continue;
    }
    if (term.what == 'v') {
      stack.push_back(values[static_cast<std::size_t>(term.value)]);
      continue;
    }
    const std::int64_t b = stack.back();
    stack.pop_back();
    std::int64_t& a = stack.back();
    if ((term.what == '/' || term.what == '%') && b == 0) throw LineFault{fmt::format("{} {} 0", a, term.what)};
    switch (term.what) {
      case '+':
        a += b;
        break;
      case '-':
        a -= b;
        break;
      case '*':
        a *= b;
        break;  // both are at most kLargestNumber
      case '/':
        a = rounded_down(a, b);
        break;
      default:
        a -= rounded_down(a, b) * b;
    }
    if (a > kLargestNumber || a < -kLargestNumber) {
      throw LineFault{fmt::format("the value {} is outside [-{}, {}]", a, kLargestNumber, kLargestNumber)};
    }
  }
  return stack.back();
}

bool holds(const WaveComparison& comparison, const WaveValues& values) {
  const std::int64_t a = value_of(comparison.left, values), b = value_of(comparison.right, values);
  if (comparison.compared == "<") return a < b;
  if (comparison.compared == "<=") return a <= b;
  if (comparison.compared == "==") return a == b;
  if (comparison.compared == "!=") return a != b;
  return comparison.compared == ">=" ? a >= b : a > b;
}

// Words, numbers and signs of one line.
std::vector<std::string> tokens_of(std::string_view line) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  std::vector<std::string> tokens;
  for (std::size_t at = 0; at < line.size() && line[at] != '#';) {
    std::size_t end = at + 1;
    if (is_word(line[at])) {
      while (end < line.size() && is_word(line[end])) ++end;
    } else if (end < line.size() && line[end] == '=' &&
               std::string_view("<>=!").find(line[at]) != std::string_view::npos) {
      ++end;
    } else if (line[at] == ' ' || line[at] == '\t' || line[at] == '\r') {
      at = end;
      continue;
    }
    tokens.emplace_back(line.substr(at, end - at));
    at = end;
  }
  return tokens;
}

// The tokens of one statement, taken from left to right.
class LineReader {
 public:
  LineReader(std::vector<std::string> tokens, bool in_start) : tokens_(std::move(tokens)), in_start_(in_start) {}

  [[nodiscard]] bool done() const { return at_ == tokens_.size(); }
  [[nodiscard]] std::string_view next() const {
    return done() ? "the end of the line" : std::string_view(tokens_[at_]).substr(0, kLongestQuoted);
  }
  bool take(std::string_view token) {
    const bool taken = !done() && tokens_[at_] == token;
    if (taken) ++at_;
    return taken;
  }
  void need(std::string_view token) {
    if (!take(token)) throw LineFault{fmt::format("expected '{}', not '{}'", token, next())};
  }
  std::string_view take_one_of(std::span<const std::string_view> words, std::string_view what) {
    for (const std::string_view word : words) {
      if (take(word)) return word;
    }
    if (done()) throw LineFault{fmt::format("{} is missing", what)};
    throw LineFault{fmt::format("'{}' is no {}{}", next(), what, suggest_name(next(), words))};
  }
  WaveExpr expr() {
    WaveExpr result;
    sum(result, 0);
    return result;
  }
  WaveComparison comparison() {
    WaveComparison result;
    result.left = expr();
    result.compared = take_one_of(kCompared, "comparison");
    result.right = expr();
    return result;
  }

 private:
  void sum(WaveExpr& result, int depth) {
    product(result, depth);
    while (next() == "+" || next() == "-") {
      const char sign = tokens_[at_++].front();
      product(result, depth);
      result.push_back({sign, 0});
    }
  }
  void product(WaveExpr& result, int depth) {
    factor(result, depth);
    while (next() == "*" || next() == "/" || next() == "%") {
      const char sign = tokens_[at_++].front();
      factor(result, depth);
      result.push_back({sign, 0});
    }
  }
  void factor(WaveExpr& result, int depth) {
    if (depth > kDeepest) throw LineFault{fmt::format("more than {} parentheses in one another", kDeepest)};
    if (take("(")) {
      sum(result, depth + 1);
      need(")");
      return;
    }
    if (done()) throw LineFault{"a number or a name is missing at the end of the line"};
    const std::string& token = tokens_[at_];
    if (token.find_first_not_of("0123456789") == std::string::npos) {
      if (token.size() > 7 || std::stoll(token) > kLargestNumber) {
        throw LineFault{fmt::format("the number {} is larger than {}", next(), kLargestNumber)};
      }
      result.push_back({'n', std::stoll(token)});
    } else {
      const auto name = std::ranges::find(kNames, token);
      if (name == kNames.end()) {
        throw LineFault{fmt::format("'{}' is no number and no name{}", next(), suggest_name(next(), kNames))};
      }
      if (in_start_ && token == "i") throw LineFault{"'i' has no value before the first tile"};
      result.push_back({'v', name - kNames.begin()});
    }
    ++at_;
  }

  std::vector<std::string> tokens_;
  std::size_t at_ = 0;
  bool in_start_;
};

constexpr std::array<std::string_view, 2> kOperands{"K", "V"};

}  // namespace

struct WaveProgram::Statement {
  WaveOp op;             // without the values of the expressions
  WaveExpr tile, stage;  // issue, read
  WaveExpr count;        // wait
  std::vector<WaveComparison> when;
};

namespace {

WaveProgram::Statement statement_of(LineReader& line, int number, bool in_start) {
  WaveProgram::Statement made;
  made.op.line = number;
  const std::string_view word = line.take_one_of(kStatements, "statement");
  if (word == "issue" || word == "read") {
    made.op.kind = word == "issue" ? WaveOpKind::issue : WaveOpKind::read;
    made.op.of_v = line.take_one_of(kOperands, "operand") == "V";
    made.tile = line.expr();
    line.need(word == "issue" ? "into" : "from");
    made.stage = line.expr();
  } else if (word == "wait") {
    made.op.kind = WaveOpKind::wait;
    line.need("vmcnt");
    line.need("(");
    made.count = line.expr();
    line.need(")");
  } else if (word == "compute") {
    made.op.kind = WaveOpKind::compute;
    const std::string_view computed = line.take_one_of(kComputed, "computation");
    made.op.computed = static_cast<WaveCompute>(std::ranges::find(kComputed, computed) - kComputed.begin());
    if (in_start) throw LineFault{"no tile is computed before the first one: move the line below 'tile'"};
  }
  if (line.take("when")) {
    do made.when.push_back(line.comparison());
    while (line.take("and"));
  }
  if (!line.done()) throw LineFault{fmt::format("'{}' follows a statement that is complete", line.next())};
  return made;
}

// The statement with its values, for one wave and tile; empty when its condition does not hold.
std::optional<WaveOp> op_of(const WaveProgram::Statement& statement, const WaveBlock& block, const WaveValues& values) {
  for (const WaveComparison& comparison : statement.when) {
    if (!holds(comparison, values)) return std::nullopt;
  }
  WaveOp op = statement.op;
  const auto wave = static_cast<std::size_t>(values[2]);
  if (op.kind == WaveOpKind::issue || op.kind == WaveOpKind::read) {
    op.tile = value_of(statement.tile, values);
    op.stage = value_of(statement.stage, values);
    if (op.tile < 0 || op.tile >= block.tiles) {
      throw LineFault{fmt::format("tile {} is outside [0, {}] in a run of {} tiles: add 'when i + 1 < tiles'?", op.tile,
                                  block.tiles - 1, block.tiles)};
    }
    if (op.stage < 0 || op.stage >= kLdsStages) {
      throw LineFault{fmt::format("stage {} is outside [0, {}]", op.stage, kLdsStages - 1)};
    }
    if (op.kind == WaveOpKind::issue) op.count = op.of_v ? block.v_copies[wave] : block.k_copies[wave];
  } else if (op.kind == WaveOpKind::wait) {
    op.count = value_of(statement.count, values);
    if (op.count < 0 || op.count > kMostInFlight) {
      throw LineFault{fmt::format("vmcnt({}) is outside [0, {}]: the counter has six bits", op.count, kMostInFlight)};
    }
  } else if (op.kind == WaveOpKind::compute) {
    op.tile = values[0];
  }
  return op;
}

}  // namespace

std::string to_text(const WaveOp& op) {
  switch (op.kind) {
    case WaveOpKind::issue:
      return fmt::format("issue {} {} into {}", op.of_v ? "V" : "K", op.tile, op.stage);
    case WaveOpKind::read:
      return fmt::format("read {} {} from {}", op.of_v ? "V" : "K", op.tile, op.stage);
    case WaveOpKind::wait:
      return fmt::format("wait vmcnt({})", op.count);
    case WaveOpKind::compute:
      return fmt::format("compute {}", kComputed[static_cast<std::size_t>(op.computed)]);
    case WaveOpKind::barrier:
      break;
  }
  return "barrier";
}

WaveProgram WaveProgram::parse(std::string_view text, std::string_view source) {
  WaveProgram program;
  program.source_ = source;
  std::vector<Fault> faults;
  std::vector<std::shared_ptr<const Statement>>* section = nullptr;
  int number = 0;
  bool has_tile = false;
  while (!text.empty() && faults.size() < kMostFaults) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (++number > static_cast<int>(kMostLines)) {
      faults.push_back({"", fmt::format("more than {} lines", kMostLines)});
      break;
    }
    LineReader reader(tokens_of(line), section == &program.start_);
    if (reader.done()) continue;
    try {
      const bool starts = reader.next() == "start", tiles = reader.next() == "tile";
      if (starts || tiles) {
        if (starts && section != nullptr) throw LineFault{"'start' must be the first line"};
        if (tiles && has_tile) throw LineFault{"'tile' occurs twice"};
        section = starts ? &program.start_ : &program.tile_;
        has_tile = has_tile || tiles;
        reader.take(reader.next());
        if (!reader.done()) throw LineFault{fmt::format("'{}' must be alone in its line", starts ? "start" : "tile")};
        continue;
      }
      if (section == nullptr) throw LineFault{"a statement before 'start' or 'tile': begin with one of them"};
      section->push_back(std::make_shared<Statement>(statement_of(reader, number, section == &program.start_)));
    } catch (const LineFault& fault) {
      faults.push_back({fmt::format("line {}", number), fault.message});
    }
  }
  if (!has_tile && faults.empty()) faults.push_back({"", "has no line 'tile': the statements of each tile"});
  if (!faults.empty()) throw InputError(std::string(source), std::move(faults));
  return program;
}

std::vector<WaveOp> WaveProgram::unroll(const WaveBlock& block, std::int64_t wave) const {
  const auto w = static_cast<std::size_t>(wave);
  WaveValues values{0, block.tiles, wave, block.waves(), block.k_copies[w], block.v_copies[w]};
  std::vector<WaveOp> ops;
  const auto add = [&](const std::vector<std::shared_ptr<const Statement>>& section) {
    for (const auto& statement : section) {
      try {
        if (const std::optional<WaveOp> op = op_of(*statement, block, values)) ops.push_back(*op);
      } catch (const LineFault& fault) {
        throw InputError(source_, fmt::format("line {}", statement->op.line), fault.message);
      }
    }
  };
  add(start_);
  for (std::int64_t tile = 0; tile < block.tiles; ++tile) {
    values[0] = tile;
    add(tile_);
  }
  return ops;
}

}  // namespace kvscope::labs
