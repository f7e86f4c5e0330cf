// Preloaded into a program by locale_test.py: the program then runs in the C locale that LC_ALL names, as it does inside
// Qt, a Python interpreter or any other host that calls setlocale. Ends the program if that locale is not installed.
#include <clocale>
#include <cstdio>
#include <cstdlib>

namespace {

__attribute__((constructor)) void use_locale() {
  if (std::setlocale(LC_ALL, "") == nullptr) {
    std::fputs("use_locale: the locale that LC_ALL names is not installed\n", stderr);
    std::_Exit(3);
  }
}

}  // namespace
