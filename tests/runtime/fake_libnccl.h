#pragma once

#include <string>
#include <vector>

namespace braid {

/// What a test tells the stand-in for NCCL, and what it tells the test. Programs that do not know
/// the stand-in set some of it by the environment variables named here.
struct FakeNccl {
  int version = 22809;  ///< $FAKE_NCCL_VERSION

  std::string fail;   ///< the call that fails, if any
  int fail_call = 0;  ///< the n-th call from now fails, counted from 1. $FAKE_NCCL_FAIL_CALL
  int error = 2;      ///< with this ncclResult_t
  int lose_op = 0;    ///< the n-th collective from now is never done, counted from 1

  int calls = 0;                 ///< that could fail, so far
  int live_comms = 0;            ///< made and not given back
  int groups = 0;                ///< group calls so far, nested ones not counted
  int max_ctas = 0;              ///< what the last communicator was asked to keep to
  int blocking = -1;             ///< and whether its calls may block
  std::vector<std::string> ops;  ///< "ncclAllReduce 12 f32 sum rank 0", in the order of enqueueing
};

}  // namespace braid

/// The control block of the stand-in.
extern "C" braid::FakeNccl* fake_nccl();
