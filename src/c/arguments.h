#pragma once

#include <dlpack/dlpack.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "braid/braid.h"
#include "braid/executable.h"
#include "braid/rendezvous.h"
#include "braid/world.h"

// Arguments of the C interface as those of C++. All throw braid::Error for what they cannot be.

namespace braid::c {

std::string text_or_empty(const char* text);
/// The options of a caller that may have been compiled with fewer of them; defaults for null.
braid_world_options all_options(const braid_world_options* given);
WorldOptions options_of(const braid_world_options& given);
/// Throws kInvalidArgument for an option that no pass has, or a value that does not fit.
PassConfig passes_of(const braid_world_options& given);
/// Sets those that say where the processes of a launcher meet, with texts that stay until the
/// thread's next call.
void set_meeting(braid_world_options& options);
/// The end of this process, which waits for the others; null where all ranks live here.
std::shared_ptr<Rendezvous> rendezvous_of(const braid_world_options& given);
/// Values of symbols, as braid_prepare takes them.
Bindings bindings_of(const char* const* symbols, const std::int64_t* values, std::size_t count);
/// `dims`: how many it has to have, so that no more are read of its shape.
DeviceTensor device_tensor(const braid_tensor* tensor, int dims);
/// `device`: the kind of that where it has to be.
DeviceTensor device_tensor(const DLTensor& tensor, int dims, std::string_view device);
/// A copy.
HostTensor host_tensor(const braid_tensor* tensor, int dims);

}  // namespace braid::c
