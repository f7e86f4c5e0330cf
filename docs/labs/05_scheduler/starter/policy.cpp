#include "policy.h"

Decision decide(const Step& step) {
  // Write this function. This one never admits a request.
  return {};
}
