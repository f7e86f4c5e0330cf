#include "gpu/virtual/text/kernel_names.h"

#include <cxxabi.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>

namespace kvscope::ptx {
namespace {

constexpr std::size_t kMostDemangled = 1024;  // characters, of libstdc++

// The position after the bracket that closes the one at `open`.
std::size_t after_bracket(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '<' || text[i] == '(') ++depth;
    if (text[i] == '>' || text[i] == ')') --depth;
    if (depth == 0) return i + 1;
  }
  return text.size();
}

// "void ns::kern<4>(float*)" -> "ns::kern<4>": without the return type and the parameters.
std::string without_parameters(std::string_view text) {
  std::size_t first = 0, end = text.size();
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '<') {
      i = after_bracket(text, i);
    } else if (text.substr(i).starts_with("(anonymous namespace)")) {
      i = after_bracket(text, i);
    } else if (text[i] == '(') {
      end = i;
      break;
    } else {
      if (text[i] == ' ') first = i + 1;
      ++i;
    }
  }
  return std::string(text.substr(first, end - first));
}

// "ns::kern<ns::T>" -> "kern<ns::T>".
std::string without_scopes(std::string_view text) {
  std::size_t first = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '<' || text[i] == '(') {
      i = after_bracket(text, i);
    } else {
      if (text.substr(i, 2) == "::") first = i + 2;
      ++i;
    }
  }
  return std::string(text.substr(first));
}

std::string without_arguments(std::string_view text) {
  return std::string(text.substr(0, text.find('<')));
}

std::string without_blanks(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ' && c != '\t') out += c;
  }
  return out;
}

// "_ZN7cutlass13device_kernelI...": "cutlass::device_kernel<...>". The scopes and the identifier, which a mangled name
// begins with, each after its length. "": it begins otherwise.
std::string outer_name(std::string_view mangled) {
  std::string_view rest = mangled.substr(2);  // _Z
  if (rest.starts_with('N')) rest.remove_prefix(1);
  std::string out;
  while (!rest.empty() && rest[0] >= '1' && rest[0] <= '9') {
    std::size_t length = 0;
    while (!rest.empty() && rest[0] >= '0' && rest[0] <= '9' && length <= rest.size()) {
      length = 10 * length + static_cast<std::size_t>(rest[0] - '0');
      rest.remove_prefix(1);
    }
    if (length > rest.size()) return {};
    const std::string_view part = rest.substr(0, length);
    out += out.empty() ? "" : "::";
    out += part.starts_with("_GLOBAL__N_") ? "(anonymous namespace)" : part;
    rest.remove_prefix(length);
  }
  if (!out.empty() && rest.starts_with('I')) out += "<...>";
  return out;
}

// "_ZZ...E4tile" and "_ZZ...E4tile_0" -> "tile": a variable of a function, whose identifier is the last part and follows
// its length. The name itself if it has no such end.
std::string local_name(std::string_view name) {
  if (!name.starts_with("_ZZ")) return std::string(name);
  for (std::size_t end = name.rfind('E'); end != std::string_view::npos; end = name.rfind('E', end - 1)) {
    const std::string_view rest = name.substr(end + 1);
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    std::size_t length = 0;
    std::from_chars(rest.data(), rest.data() + digits, length);
    const std::string_view identifier = rest.substr(digits);
    if (length == 0 || length > identifier.size()) continue;
    const std::string_view number = identifier.substr(length);  // of variables of one name
    if (number.empty() || (number[0] == '_' && number.find_first_not_of("0123456789", 1) == std::string_view::npos))
      return std::string(identifier.substr(0, length));
  }
  return std::string(name);
}

}  // namespace

std::string demangled(std::string_view name) {
  if (!name.starts_with("_Z")) return std::string(name);
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, nullptr), &std::free);
  if (text != nullptr) return text.get();
  const std::string outer = name.size() > kMostDemangled ? outer_name(name) : std::string();
  return outer.empty() ? std::string(name) : outer;
}

std::string parameter_list(std::string_view name) {
  const std::string whole = demangled(name);
  if (whole == name || !whole.ends_with(')')) return {};
  int open = 0;
  for (std::size_t at = whole.size(); at > 0; --at) {  // from the end: template arguments have brackets too
    const char c = whole[at - 1];
    open += c == ')' ? 1 : c == '(' ? -1 : 0;
    if (open == 0) return whole.substr(at - 1);
  }
  return {};
}

std::string declared_name(std::string_view name) {
  const std::string whole = demangled(name);
  if (whole == name) return local_name(name);
  return without_scopes(whole);
}

std::vector<std::string> name_forms(std::string_view name) {
  const std::string whole = demangled(name);
  const std::string plain = without_parameters(whole);
  const std::string local = without_scopes(plain);
  return {std::string(name), whole, plain, local, without_arguments(plain), without_arguments(local)};
}

std::string short_name(const Module& module, std::int32_t function) {
  std::map<std::string, int> users;
  for (const Function& f : module.functions) {
    if (!f.entry || !f.defined) continue;
    const std::vector<std::string> forms = name_forms(f.name);
    for (const std::string& form : std::set<std::string>(forms.begin(), forms.end())) ++users[form];
  }
  const std::string_view name = module.functions[static_cast<std::size_t>(function)].name;
  std::string shortest(name);
  for (const std::string& form : name_forms(name)) {
    if (users[form] == 1 && form.size() < shortest.size()) shortest = form;
  }
  return shortest;
}

std::vector<std::int32_t> find_kernels(const Module& module, std::string_view asked) {
  const std::string word = without_blanks(asked);
  std::vector<std::int32_t> best;
  std::size_t best_form = name_forms("").size();
  for (std::size_t i = 0; i < module.functions.size(); ++i) {
    const Function& f = module.functions[i];
    if (!f.entry || !f.defined) continue;
    std::vector<std::string> forms = name_forms(f.name);
    for (std::string& form : forms) form = without_blanks(form);
    const auto found = std::find(forms.begin(), forms.end(), word);
    const auto form = static_cast<std::size_t>(found - forms.begin());
    const auto begins = [&](const std::string& text) { return text.starts_with(word); };
    if (found == forms.end() && (word.empty() || std::none_of(forms.begin(), forms.end(), begins))) continue;
    if (form > best_form) continue;
    if (form < best_form) best.clear();
    best_form = form;
    best.push_back(static_cast<std::int32_t>(i));
  }
  return best;
}

}  // namespace kvscope::ptx
