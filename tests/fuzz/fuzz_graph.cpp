// A graph from any text: an error, or a graph that its own JSON gives again.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "braid/error.h"
#include "braid/graph.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text;
  try {
    const braid::Graph graph = braid::parse_graph({reinterpret_cast<const char*>(data), size});
    verify(graph);
    text = to_json(graph);
  } catch (const braid::Error& error) {
    if (error.code() != braid::ErrorCode::kInvalidArgument) std::abort();
    return 0;
  }
  if (to_json(braid::parse_graph(text)) != text) std::abort();  // an exception here is a find, too
  return 0;
}
