#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "braid/error.h"

namespace braid {

/// The code and the text of the error that `call` throws.
template <class Call>
std::pair<ErrorCode, std::string> error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  ADD_FAILURE() << "no error";
  return {};
}

}  // namespace braid
