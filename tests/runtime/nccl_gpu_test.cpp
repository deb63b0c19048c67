// NCCL itself, where there is a GPU: a communicator of one rank does every call.
#include <gtest/gtest.h>

#include <cstring>

#include "runtime/cuda/cuda_device.h"
#include "runtime/nccl/nccl_communicator.h"

namespace braid {
namespace {

using Op = CollectiveCall::Op;

/// To be run in a process of its own, without the stand-ins of other tests.
TEST(NcclOnAGpu, DISABLED_ACommunicatorOfOneRankDoesEveryCall) {
  const auto device = create_cuda_device(1);
  const auto stream = device->create_stream(0);
  const auto communicator = make_nccl_communicator(*device, {"far", 0, 0, 1, 60'000'000'000});
  GroupCall connecting(*communicator);
  communicator->connect(std::vector<std::string>{communicator->offer()});
  connecting.end();
  communicator->settle();
  constexpr std::size_t kCount = 1000;
  std::vector<std::uint8_t> host(8 * kCount);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<std::uint8_t>(i % 60);
  const auto send = device->allocate(0, host.size());
  const auto receive = device->allocate(0, host.size());
  stream->copy_from_host(send->address(), host.data(), host.size());
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kI32, DType::kI64,
                            DType::kI8, DType::kU8, DType::kF8E4M3}) {
    for (const Op op :
         {Op::kAllReduce, Op::kAllGather, Op::kReduceScatter, Op::kAllToAll, Op::kBroadcast}) {
      for (const ReduceOp reduce :
           {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kProduct}) {
        const bool reduces = op == Op::kAllReduce || op == Op::kReduceScatter;
        if (!reduces && reduce != ReduceOp::kSum) continue;
        if (reduce == ReduceOp::kAvg && !is_float(dtype)) continue;
        SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + std::to_string(static_cast<int>(op)));
        stream->fill(receive->address(), 0xff, host.size());
        CollectiveCall call{.op = op,
                            .dtype = dtype,
                            .reduce = reduce,
                            .root = 0,
                            .send = send->address(),
                            .receive = receive->address(),
                            .count = kCount,
                            .send_counts = {kCount},
                            .receive_counts = {kCount},
                            .receive_starts = {0}};
        communicator->begin(*stream);
        GroupCall group(*communicator);
        communicator->enqueue(call, *stream);
        group.end();
        communicator->finish(*stream);
        std::vector<std::uint8_t> got(kCount * dtype_size(dtype));
        stream->copy_to_host(got.data(), receive->address(), got.size());
        stream->synchronize();
        EXPECT_EQ(std::memcmp(got.data(), host.data(), got.size()), 0);
        EXPECT_EQ(communicator->async_error(), "");
      }
    }
  }
  EXPECT_EQ(communicator->progress().begun, communicator->progress().ended);
}

}  // namespace
}  // namespace braid
