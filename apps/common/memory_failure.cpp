#include "apps/common/memory_failure.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "apps/common/faults.h"
#include "core/base/file.h"

namespace kvscope::apps {
namespace {

char program_name[64] = "kvscope";  // a copy that needs no memory
std::terminate_handler other_handler = nullptr;

void put_text(const char* text) noexcept {
  static_cast<void>(::write(STDERR_FILENO, text, std::strlen(text)) >= 0);
}

// An allocation may fail where no exception can be caught: in a destructor, in a thread, before main().
[[noreturn]] void end_without_memory() noexcept {
  if (const std::exception_ptr error = std::current_exception()) {
    try {
      std::rethrow_exception(error);
    } catch (const std::bad_alloc&) {
      remove_pending_files();
      print_memory_failure();
      ::_exit(kExitBadInput);
    } catch (...) {
    }
  }
  if (other_handler != nullptr) other_handler();
  std::abort();
}

// Before the constructors of other global objects, which may allocate.
__attribute__((constructor(101))) void watch_memory() noexcept {
  other_handler = std::set_terminate(end_without_memory);
}

}  // namespace

void set_program_name(std::string_view program) noexcept {
  const std::size_t length = std::min(program.size(), sizeof program_name - 1);
  std::memcpy(program_name, program.data(), length);
  program_name[length] = '\0';
}

void print_memory_failure() noexcept {
  put_text(program_name);
  put_text(": out of memory: ask for fewer tokens, layers or heads at a time\n");
}

}  // namespace kvscope::apps
