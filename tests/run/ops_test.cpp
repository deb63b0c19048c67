// Every op on the device against the reference: alone, and behind and in front of pointwise work
// where that is fused; several shapes and dtypes each.

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "run/graph_builder.h"
#include "run/run_graph.h"

namespace braid {
namespace {

constexpr DType kF32 = DType::kF32;
constexpr DType kF16 = DType::kF16;
constexpr DType kBF16 = DType::kBF16;
constexpr DType kI32 = DType::kI32;
constexpr DType kI64 = DType::kI64;
constexpr DType kI8 = DType::kI8;
constexpr DType kU8 = DType::kU8;
constexpr DType kBool = DType::kBool;

using Ints = std::vector<std::int64_t>;

class Build : public testing::GraphBuilder {
 public:
  Build() : GraphBuilder(64) {}
  ValueId to(ValueId x, DType dtype) { return op("to", {x}, {{"dtype", dtype}}); }
  ValueId full(DType dtype, Shape shape, std::int64_t value) {
    return op("full", {}, {{"shape", std::move(shape)}, {"value", value}, {"dtype", dtype}});
  }
  /// In (0, 1], and some exact ones.
  ValueId positive(DType dtype, Shape shape) {
    return op("exp", {op("neg", {op("relu", {in(dtype, std::move(shape))})})});
  }
  void out(ValueId v) { graph().add_output(v); }
};

struct Case {
  std::string name;
  std::function<void(Build&)> build;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Dim kT = Dim::symbol("T");

std::vector<Case> pointwise_cases() {
  std::vector<Case> cases;
  const auto each = [&](const std::string& name, std::vector<DType> dtypes,
                        const std::function<ValueId(Build&, DType)>& make) {
    for (DType dtype : dtypes) {
      cases.push_back(
          {name + "_" + std::string(dtype_name(dtype)), [=](Build& b) { b.out(make(b, dtype)); }});
    }
  };
  const std::vector<DType> floats{kF32, kF16, kBF16};
  const std::vector<DType> numbers{kF32, kBF16, kI32, kI64, kU8};
  for (const char* name :
       {"exp", "tanh", "erf", "floor", "round", "sigmoid", "silu", "gelu", "softplus"}) {
    each(name, floats, [=](Build& b, DType d) { return b.op(name, {b.in(d, {kT, 33})}); });
  }
  each("gelu_tanh", floats, [](Build& b, DType d) {
    return b.op("gelu", {b.in(d, {kT, 33})}, {{"approximate", std::string("tanh")}});
  });
  for (const char* name : {"log", "sqrt", "rsqrt"}) {
    each(name, floats, [=](Build& b, DType d) { return b.op(name, {b.positive(d, {kT, 33})}); });
  }
  for (const char* name : {"expm1", "tan", "atan", "cosh", "sinh", "asinh", "erfc"}) {
    each(name, {kF32, kBF16}, [=](Build& b, DType d) { return b.op(name, {b.in(d, {kT, 33})}); });
  }
  for (const char* name : {"acos", "asin", "atanh"}) {
    each(name, {kF32, kBF16}, [=](Build& b, DType d) {
      return b.op(name, {b.op("tanh", {b.in(d, {kT, 33})})});
    });
  }
  for (const char* name : {"log1p", "acosh"}) {
    each(name, {kF32, kBF16}, [=](Build& b, DType d) {
      const ValueId x = b.positive(d, {kT, 33});
      return b.op(name, {b.op("add", {x, b.full(d, {33}, 1)})});
    });
  }
  for (const char* name : {"atan2", "hypot", "copysign"}) {
    each(name, {kF32, kBF16}, [=](Build& b, DType d) {
      return b.op(name, {b.in(d, {kT, 40}), b.in(d, {40})});
    });
  }
  for (const char* name : {"neg", "abs", "relu"}) {
    each(name, numbers, [=](Build& b, DType d) { return b.op(name, {b.in(d, {kT, 40})}); });
  }
  for (const char* name : {"add", "sub", "mul", "minimum", "maximum"}) {
    each(name, numbers, [=](Build& b, DType d) {
      return b.op(name, {b.in(d, {kT, 40}), b.in(d, {40})});
    });
  }
  for (const char* name : {"eq", "ne", "lt", "le", "gt", "ge"}) {
    each(name, numbers, [=](Build& b, DType d) {
      const ValueId x = b.in(d, {kT, 24});
      return b.op(name, {b.op("relu", {x}), b.op("relu", {b.in(d, {kT, 24})})});
    });
  }
  for (const char* name : {"logical_and", "logical_or"}) {
    each(name, {kF32, kI32, kBool}, [=](Build& b, DType d) {
      return b.op(name, {b.in(d, {kT, 24}), b.in(d, {24})});
    });
  }
  each("logical_not", {kF32, kI64, kBool}, [](Build& b, DType d) {
    return b.op("logical_not", {b.in(d, {kT, 24})});
  });
  each("where", {kF32, kF16, kI32, kBool}, [](Build& b, DType d) {
    return b.op("where", {b.in(kBool, {kT, 1}), b.in(d, {kT, 48}), b.in(d, {48})});
  });
  each("clamp", {kF32, kBF16}, [](Build& b, DType d) {
    return b.op("clamp", {b.in(d, {kT, 40})}, {{"min", -0.5}, {"max", 2.0}});
  });
  each("clamp", {kI32, kI64}, [](Build& b, DType d) {
    return b.op("clamp", {b.in(d, {kT, 40})}, {{"min", std::int64_t{1}}, {"max", std::int64_t{5}}});
  });
  // Constants alone, which the kernel's compiler sees as literals.
  for (const char* name :
       {"neg", "abs", "relu", "exp", "sigmoid", "silu", "gelu", "tanh", "round"}) {
    const bool of_floats = !std::set<std::string>{"neg", "abs", "relu"}.contains(name);
    each(std::string(name) + "_full", of_floats ? floats : numbers,
         [=](Build& b, DType d) { return b.op(name, {b.full(d, {5}, d == kU8 ? 3 : -3)}); });
  }
  for (const char* name : {"add", "sub", "mul", "minimum", "maximum"}) {
    each(std::string(name) + "_full", numbers, [=](Build& b, DType d) {
      return b.op(name, {b.full(d, {5}, d == kU8 ? 3 : -3), b.full(d, {5}, 2)});
    });
  }
  each("abs_of_where_full", {kF32, kI64}, [](Build& b, DType d) {
    return b.op("abs", {b.op("where", {b.in(kBool, {5}), b.full(d, {5}, -3), b.full(d, {5}, 2)})});
  });
  each("clamp_low", {kF32}, [](Build& b, DType d) {
    return b.op("clamp", {b.in(d, {kT, 40})}, {{"min", 0.25}});
  });
  each("div", floats, [](Build& b, DType d) {
    return b.op("div", {b.in(d, {kT, 33}), b.positive(d, {33})});
  });
  each("logaddexp", floats, [](Build& b, DType d) {
    return b.op("logaddexp", {b.in(d, {kT, 33}), b.in(d, {33})});
  });
  each("pow", floats, [](Build& b, DType d) {
    return b.op("pow", {b.positive(d, {kT, 33}), b.in(d, {33})});
  });
  each("full", {kF32, kI32}, [](Build& b, DType d) {
    const ValueId half = b.op("full", {}, {{"value", 3.0}, {"dtype", d}});
    return b.op("mul", {b.in(d, {kT, 33}), half});
  });
  return cases;
}

std::vector<Case> cast_cases() {
  std::vector<Case> cases;
  for (DType from : {kF32, kF16, kBF16, kI32, kI64, kI8, kU8, kBool}) {
    for (DType to : {kF32, kF16, kBF16, kI32, kI64, kI8, kU8, kBool}) {
      if (from == to) continue;
      cases.push_back({"to_" + std::string(dtype_name(from)) + "_" + std::string(dtype_name(to)),
                       [=](Build& b) {
                         b.out(b.to(b.op("abs", {b.to(b.in(from, {kT, 40}), kF32)}), to));
                       }});
    }
  }
  for (DType small : {DType::kF8E4M3, DType::kF8E5M2}) {
    for (DType wide : {kF32, kF16, kBF16}) {
      cases.push_back(
          {"through_" + std::string(dtype_name(small)) + "_" + std::string(dtype_name(wide)),
           [=](Build& b) {
             const ValueId narrow = b.to(b.in(wide, {kT, 40}), small);
             b.out(narrow);
             b.out(b.to(narrow, wide));
           }});
    }
  }
  return cases;
}

std::vector<Case> reduction_cases() {
  std::vector<Case> cases;
  const Shape shapes[] = {{kT, 33}, {kT, 256}, {4, kT, 24}, {3, 1001}, {2, 20000}, {7, 1}};
  for (const char* name : {"sum", "mean", "amax", "amin", "argmax"}) {
    for (std::size_t s = 0; s < std::size(shapes); ++s) {
      for (const Ints& dims : {Ints{-1}, Ints{0}, Ints{}, Ints{0, 1}}) {
        if (std::string(name) == "argmax" && dims.size() > 1) continue;
        std::string label = std::string(name) + "_shape" + std::to_string(s) + "_dims";
        for (std::int64_t d : dims) label += d < 0 ? "L" : std::to_string(d);
        const Shape shape = shapes[s];
        cases.push_back({label, [=](Build& b) {
                           const DType dtype = s % 2 == 0 ? kF32 : kBF16;
                           const bool index = std::string(name) == "argmax";
                           const ValueId x = index ? b.in(dtype, shape) : b.positive(dtype, shape);
                           ValueId y = b.op(name, {x}, {{"dim", dims}, {"keepdim", s % 2 == 0}});
                           b.out(y);
                           if (!index && s % 2 == 0 && dims == Ints{-1}) {
                             b.out(b.op("sub", {x, y}));
                           }
                         }});
      }
    }
  }
  cases.push_back({"amax_i32", [](Build& b) {
                     b.out(b.op("amax", {b.in(kI32, {kT, 300})}, {{"dim", Ints{1}}}));
                   }});
  cases.push_back({"amin_i64_rows", [](Build& b) {
                     b.out(b.op("amin", {b.in(kI64, {kT, 300})}, {{"dim", Ints{0}}}));
                   }});
  // Rows in registers, swept in pieces, and of each thread.
  for (const Shape& shape : {Shape{kT, 300}, Shape{3, 20000}, Shape{5, kT, 9}}) {
    const std::int64_t dim = shape.size() == 3 ? 1 : -1;
    cases.push_back({"truths_" + shape.back().str(), [=](Build& b) {
                       const Attrs along{{"dim", Ints{dim}}};
                       const ValueId x = b.in(kBF16, shape);
                       const ValueId zero = b.op("full", {}, {{"value", 2.5}, {"dtype", kBF16}});
                       const ValueId above = b.op("lt", {zero, x});
                       for (const char* name : {"any", "all"}) {
                         b.out(b.op(name, {above}, along));
                         b.out(b.op(name, {b.op("relu", {x})}, along));
                       }
                       b.out(b.op("argmin", {x}, along));
                       b.out(b.op("log_softmax", {x}, {{"dim", dim}}));
                     }});
  }
  for (const std::int64_t width : {1, 24, 64, 100, 1001, 2048, 20000}) {
    for (DType dtype : {kF32, kF16, kBF16}) {
      const std::string suffix = "_" + std::to_string(width) + "_" + std::string(dtype_name(dtype));
      const Dim rows = width > 10000 ? Dim(3) : kT;
      cases.push_back({"softmax" + suffix, [=](Build& b) {
                         b.out(b.op("softmax", {b.in(dtype, {rows, width})}));
                       }});
      cases.push_back(
          {"layer_norm" + suffix, [=](Build& b) {
             b.out(b.op("layer_norm",
                        {b.in(dtype, {rows, width}), b.in(dtype, {width}), b.in(dtype, {width})},
                        {{"eps", 1e-5}}));
           }});
      cases.push_back({"add_rms_norm" + suffix, [=](Build& b) {
                         const ValueId x = b.op("silu", {b.in(dtype, {rows, width})});
                         b.out(b.op("add_rms_norm",
                                    {x, b.in(dtype, {rows, width}), b.in(dtype, {width})},
                                    {{"eps", 1e-5}}));
                       }});
      cases.push_back({"add_rms_norm2" + suffix, [=](Build& b) {
                         const std::vector<ValueId> inputs{b.in(dtype, {rows, width}),
                                                           b.in(dtype, {rows, width}),
                                                           b.in(dtype, {width})};
                         b.out(b.op("add_rms_norm2", inputs, {{"eps", 1e-5}}));
                         b.out(b.op("add_rms_norm2", inputs, {{"eps", 1e-5}}, 1));
                       }});
    }
  }
  return cases;
}

std::vector<Case> movement_cases() {
  std::vector<Case> cases;
  const auto add = [&](const char* name, const std::function<ValueId(Build&, ValueId)>& move,
                       Shape shape) {
    // Alone; between pointwise nodes; in front of a norm.
    cases.push_back(
        {std::string(name) + "_alone", [=](Build& b) { b.out(move(b, b.in(kBF16, shape))); }});
    cases.push_back({std::string(name) + "_between", [=](Build& b) {
                       b.out(b.op("neg", {move(b, b.op("silu", {b.in(kF32, shape)}))}));
                     }});
    cases.push_back({std::string(name) + "_before_softmax", [=](Build& b) {
                       const ValueId x = move(b, b.in(kF16, shape));
                       b.out(b.op("softmax", {x}));
                       b.out(b.op("add", {x, x}));
                     }});
  };
  const auto dims = [](std::int64_t a, std::int64_t c) { return Attrs{{"dim0", a}, {"dim1", c}}; };
  add("view",
      [](Build& b, ValueId x) {
        return b.op("view", {x}, {{"shape", Shape{kT, 6, 8}}});
      },
      {kT, 48});
  add("flatten",
      [](Build& b, ValueId x) {
        return b.op("view", {x}, {{"shape", Shape{kT * 48}}});
      },
      {kT, 48});
  add("transpose", [=](Build& b, ValueId x) { return b.op("transpose", {x}, dims(0, 1)); },
      {kT, 48});
  add("select",
      [](Build& b, ValueId x) {
        return b.op("select", {x}, {{"dim", std::int64_t{1}}, {"index", std::int64_t{-2}}});
      },
      {kT, 5, 24});
  add("narrow",
      [](Build& b, ValueId x) {
        const Attrs part{
            {"dim", std::int64_t{0}}, {"start", std::string("T")}, {"length", std::string("T+1")}};
        return b.op("narrow", {x}, part);
      },
      {kT * 3, 24});
  add("heads",
      [=](Build& b, ValueId x) {
        return b.op("transpose", {b.op("view", {x}, {{"shape", Shape{kT, 4, 16}}})}, dims(0, 1));
      },
      {kT, 64});
  add("merge_heads",
      [=](Build& b, ValueId x) {
        return b.op("view", {b.op("transpose", {x}, dims(0, 1))}, {{"shape", Shape{kT, 64}}});
      },
      {4, kT, 16});
  add("permute",
      [](Build& b, ValueId x) {
        return b.op("permute", {x}, {{"dims", Ints{2, 0, 1}}});
      },
      {3, kT, 20});
  add("expand",
      [](Build& b, ValueId x) {
        return b.op("expand", {x}, {{"shape", Shape{3, kT, 20}}});
      },
      {kT, 1});
  add("slice",
      [](Build& b, ValueId x) {
        return b.op(
            "slice", {x},
            {{"dim", std::int64_t{1}}, {"start", std::int64_t{8}}, {"end", std::int64_t{-8}}});
      },
      {kT, 48});
  add("slice_step",
      [](Build& b, ValueId x) {
        return b.op(
            "slice", {x},
            {{"dim", std::int64_t{-1}}, {"start", std::int64_t{1}}, {"step", std::int64_t{3}}});
      },
      {kT, 48});
  add("slice_rows",
      [](Build& b, ValueId x) {
        return b.op("slice", {x}, {{"dim", std::int64_t{0}}, {"end", std::int64_t{1}}});
      },
      {kT, 48});
  add("split",
      [](Build& b, ValueId x) {
        return b.op("split", {x}, {{"dim", std::int64_t{1}}, {"split_size", Ints{16, 32}}}, 1);
      },
      {kT, 48});
  add("getitem",
      [](Build& b, ValueId x) {
        const ValueId part =
            b.op("split", {x}, {{"dim", std::int64_t{1}}, {"split_size", Ints{16}}}, 2);
        return b.op("getitem", {part}, {{"index", std::int64_t{2}}});
      },
      {kT, 48});
  const auto text = [](const char* expression) { return AttrValue(std::string(expression)); };
  add("slice_by_symbol",
      [=](Build& b, ValueId x) {
        return b.op("slice", {x}, {{"start", text("T-1")}, {"end", text("2*T-1")}});
      },
      {kT * 2, 24});
  add("slice_that_no_shape_tells",
      [=](Build& b, ValueId x) {
        return b.op("slice", {x}, {{"start", text("T")}, {"end", text("T+2")}});
      },
      {300, 24});
  add("split_by_symbol",
      [](Build& b, ValueId x) {
        return b.op("split", {x}, {{"split_size", Shape{kT}}}, 1);
      },
      {kT * 2 + 1, 24});
  add("chunk_by_symbol",
      [](Build& b, ValueId x) {
        return b.op("chunk", {x}, {{"chunks", std::int64_t{2}}}, 1);
      },
      {kT * 2 + 1, 24});
  add("softmax_of_columns",
      [](Build& b, ValueId x) {
        return b.op("softmax", {x}, {{"dim", std::int64_t{1}}});
      },
      {kT, 5, 12});
  add("cat_cols",
      [](Build& b, ValueId x) {
        return b.op("cat", {x, b.op("neg", {x}), x}, {{"dim", std::int64_t{1}}});
      },
      {kT, 24});
  add("cat_rows",
      [](Build& b, ValueId x) {
        return b.op("cat", {x, x}, {{"dim", std::int64_t{0}}});
      },
      {kT, 24});
  add("rotate_half",
      [](Build& b, ValueId x) {
        const Attrs halves{{"dim", std::int64_t{-1}}, {"split_size", Ints{16}}};
        const ValueId low = b.op("split", {x}, halves, 0);
        const ValueId high = b.op("split", {x}, halves, 1);
        return b.op("cat", {b.op("neg", {high}), low}, {{"dim", std::int64_t{-1}}});
      },
      {kT, 2, 32});
  return cases;
}

std::vector<Case> gather_cases() {
  std::vector<Case> cases;
  for (const bool interleaved : {false, true}) {
    for (const std::int64_t width : {8, 20, 64}) {
      cases.push_back(
          {"rotary_" + std::to_string(width) + (interleaved ? "_interleaved" : ""), [=](Build& b) {
             const ValueId x = b.in(kBF16, {kT, 4, width});
             const ValueId cos = b.in(kBF16, {kT, 1, width / 2});
             const ValueId sin = b.in(kBF16, {kT, 1, width / 2});
             b.out(b.op("rotary_embedding", {x, cos, sin}, {{"interleaved", interleaved}}));
           }});
    }
  }
  for (const bool interleaved : {false, true}) {
    // Norms of heads, and of all heads together, which are more than a block holds.
    for (const std::int64_t heads : {1, 320}) {
      cases.push_back(
          {fmt::format("rotary_of_norm_{}{}", heads, interleaved ? "_interleaved" : ""),
           [=](Build& b) {
             const std::int64_t row = heads * 64;
             const ValueId x = b.in(kBF16, {kT, 2, row});
             const ValueId norm = heads == 1
                                      ? b.op("rms_norm", {x, b.in(kBF16, {row})}, {{"eps", 1e-5}})
                                      : b.op("layer_norm", {x}, {{"eps", 1e-5}});
             const ValueId apart = b.op("view", {norm}, {{"shape", Shape{kT, 2 * heads, 64}}});
             const ValueId cos = b.in(kBF16, {kT, 1, 32}), sin = b.in(kBF16, {kT, 1, 32});
             b.out(b.op("rotary_embedding", {apart, cos, sin}, {{"interleaved", interleaved}}));
           }});
    }
  }
  cases.push_back({"embedding", [](Build& b) {
                     const ValueId e = b.op("embedding", {b.in(kF16, {50, 96}), b.in(kI64, {kT})});
                     b.out(e);
                     b.out(b.op("rms_norm", {e}, {{"eps", 1e-5}}));
                   }});
  cases.push_back({"embedding_2d", [](Build& b) {
                     b.out(b.op("embedding", {b.in(kF32, {8, 10}), b.in(kI32, {2, kT})}));
                   }});
  cases.push_back({"index_select_rows", [](Build& b) {
                     b.out(b.op("index_select", {b.in(kF32, {10, 33}), b.in(kI32, {5})},
                                {{"dim", std::int64_t{0}}}));
                   }});
  cases.push_back({"index_select_cols", [](Build& b) {
                     b.out(b.op("index_select", {b.in(kBF16, {kT, 33}), b.in(kI64, {7})},
                                {{"dim", std::int64_t{-1}}}));
                   }});
  const auto along = [](std::int64_t dim) { return Attrs{{"dim", dim}}; };
  cases.push_back(
      {"gather", [=](Build& b) {
         // Along each dim, from memory and from what the kernel computes.
         const ValueId x = b.in(kBF16, {kT, 9, 12});
         b.out(b.op("gather", {x, b.in(kI64, {kT, 5, 12})}, along(1)));
         b.out(b.op("gather", {b.op("silu", {x}), b.in(kI32, {kT, 7, 4})}, along(-1)));
         b.out(b.op("gather", {b.in(kI64, {8, kT + 1}), b.in(kI64, {3, kT})}, along(0)));
       }});
  cases.push_back({"take_along_dim", [=](Build& b) {
                     const ValueId x = b.in(kF32, {kT, 1, 12});
                     b.out(b.op("take_along_dim", {x, b.in(kI64, {1, 3, 5})}, along(2)));
                     b.out(b.op("take_along_dim", {x, b.in(kI64, {2, kT})}));
                   }});
  cases.push_back({"log_probability", [=](Build& b) {
                     const ValueId logits = b.op("log_softmax", {b.in(kF32, {kT, 40})});
                     b.out(b.op("gather", {logits, b.in(kI64, {kT, 1})}, along(1)));
                   }});
  cases.push_back({"counts", [=](Build& b) {
                     const Attrs bins{{"bins", std::int64_t{7}}, {"min", -2.0}, {"max", 1.5}};
                     b.out(b.op("histc", {b.in(kF32, {kT, 40})}, bins));
                     b.out(b.op("histc", {b.op("exp", {b.in(kBF16, {300})})}, bins));
                     const Attrs many{{"minlength", std::int64_t{40}}};
                     b.out(b.op("bincount", {b.in(kI32, {kT})}, many));
                     b.out(b.op("bincount", {b.in(DType::kU8, {500})}, many));
                   }});
  cases.push_back({"one_hot_of_symbols", [=](Build& b) {
                     const Attrs classes{{"num_classes", std::string("T+3")}};
                     const ValueId hot = b.op("one_hot", {b.in(kI32, {kT, 2})}, classes);
                     b.out(b.op("sum", {hot}, {{"dim", Ints{0, 1}}}));
                   }});
  cases.push_back({"positions_everywhere", [=](Build& b) {
                     // In the operands of a matmul and behind it, as indices, and as a mask.
                     const auto to_end = [&](const char* end, DType dtype) {
                       return b.op("arange", {}, {{"end", std::string(end)}, {"dtype", dtype}});
                     };
                     const ValueId x = b.op("mul", {b.in(kF16, {kT, 40}), to_end("40", kF16)});
                     const ValueId y = b.op("mm", {x, b.in(kF16, {40, 72})});
                     b.out(b.op("add", {y, to_end("72", kF16)}));
                     b.out(b.op("embedding", {b.in(kBF16, {64, 24}), to_end("T", kI64)}));
                     const ValueId i = b.op("unsqueeze", {to_end("T", kI32)}, along(1));
                     const ValueId seen = b.op("le", {to_end("T", kI32), i});
                     const ValueId q = b.in(kF16, {2, kT, 32});
                     b.out(b.op("scaled_dot_product_attention", {q, q, q, seen}));
                   }});
  cases.push_back({"positions", [=](Build& b) {
                     // A rotary table, and a causal mask.
                     const auto counted = [&](DType dtype, const char* start, const char* end,
                                              std::int64_t step) {
                       return b.op("arange", {},
                                   {{"start", std::string(start)},
                                    {"end", std::string(end)},
                                    {"step", step},
                                    {"dtype", dtype}});
                     };
                     const ValueId row =
                         b.op("unsqueeze", {counted(kF32, "T", "2*T", 1)}, along(1));
                     const ValueId angle = b.op("mul", {row, b.in(kF32, {16})});
                     b.out(b.op("cos", {angle}));
                     b.out(b.op("sin", {b.to(angle, kBF16)}));
                     const ValueId i = b.op("unsqueeze", {counted(kI32, "0", "T", 1)}, along(-1));
                     const ValueId hidden = b.op("lt", {i, counted(kI32, "2*T", "0", -2)});
                     const ValueId low = b.op("full", {}, {{"value", -1e4}, {"dtype", kF16}});
                     b.out(b.op("masked_fill", {b.in(kF16, {3, kT, kT}), hidden, low}));
                   }});
  return cases;
}

/// Numbers of 4 bits, packed along K as in GPTQ or along N as in AWQ, with scales and zeros of 32
/// rows. A matmul of few rows unpacks them itself.
Case packed_weights(const std::string& name, const Dim& rows, bool along_k) {
  return {name, [=](Build& b) {
            const auto reshaped = [&](ValueId x, Shape shape) {
              return b.op("reshape", {x}, {{"shape", std::move(shape)}});
            };
            const ValueId by =
                b.op("arange", {},
                     {{"end", std::int64_t{32}}, {"step", std::int64_t{4}}, {"dtype", kI32}});
            const ValueId mask = b.op("full", {}, {{"value", std::int64_t{15}}, {"dtype", kI32}});
            const auto numbers = [&](ValueId words, ValueId shifts, Shape shape) {
              const ValueId shifted = b.op("bitwise_right_shift", {words, shifts});
              return reshaped(b.op("bitwise_and", {shifted, mask}), std::move(shape));
            };
            const ValueId w =
                along_k ? numbers(b.in(kI32, {16, 1, 72}), reshaped(by, {1, 8, 1}), {4, 32, 72})
                        : numbers(b.in(kI32, {128, 9, 1}), by, {4, 32, 72});
            const ValueId zeros = numbers(b.in(kI32, {4, 9, 1}), by, {4, 1, 72});
            const ValueId scaled =
                b.op("mul", {b.to(b.op("sub", {w, zeros}), kBF16), b.in(kBF16, {4, 1, 72})});
            b.out(b.op("mm", {b.in(kBF16, {rows, 128}), reshaped(scaled, {128, 72})}));
          }};
}

std::vector<Case> matmul_cases() {
  std::vector<Case> cases;
  const auto transposed = [](Build& b, ValueId x, std::int64_t a, std::int64_t c) {
    return b.op("transpose", {x}, {{"dim0", a}, {"dim1", c}});
  };
  for (DType dtype : {kF32, kF16, kBF16}) {
    const std::string suffix = "_" + std::string(dtype_name(dtype));
    for (const std::int64_t n : {1, 8, 66, 130}) {
      for (const std::int64_t k : {1, 24, 100}) {
        const std::string size = "_n" + std::to_string(n) + "_k" + std::to_string(k) + suffix;
        cases.push_back({"mm" + size, [=](Build& b) {
                           b.out(b.op("mm", {b.in(dtype, {kT, k}), b.in(dtype, {k, n})}));
                         }});
        cases.push_back({"mm_both_transposed" + size, [=](Build& b) {
                           b.out(b.op("mm", {transposed(b, b.in(dtype, {k, kT}), 0, 1),
                                             transposed(b, b.in(dtype, {n, k}), 0, 1)}));
                         }});
      }
    }
    cases.push_back({"addmm" + suffix, [=](Build& b) {
                       b.out(b.op("addmm",
                                  {b.in(dtype, {72}), b.in(dtype, {kT, 40}), b.in(dtype, {40, 72})},
                                  {{"alpha", 0.5}, {"beta", 2.0}}));
                     }});
    cases.push_back({"bmm" + suffix, [=](Build& b) {
                       b.out(b.op("bmm", {b.in(dtype, {3, kT, 40}), b.in(dtype, {3, 40, 24})}));
                     }});
    cases.push_back({"matmul_broadcast" + suffix, [=](Build& b) {
                       const ValueId y =
                           b.op("matmul", {b.in(dtype, {2, 1, kT, 40}), b.in(dtype, {3, 40, 24})});
                       b.out(b.op("silu", {y}));
                     }});
    cases.push_back({"matmul_folded" + suffix, [=](Build& b) {
                       b.out(b.op("matmul", {b.in(dtype, {2, kT, 40}), b.in(dtype, {40, 24})}));
                     }});
    cases.push_back(
        {"scores" + suffix, [=](Build& b) {
           // q k^T over heads that lie side by side in memory.
           const auto heads = [&] {
             const ValueId x = b.in(dtype, {kT, 64});
             return transposed(b, b.op("view", {x}, {{"shape", Shape{kT, 4, 16}}}), 0, 1);
           };
           const ValueId s = b.op("bmm", {heads(), transposed(b, heads(), 1, 2)});
           b.out(b.op("softmax", {s}));
         }});
    cases.push_back({"pair" + suffix, [=](Build& b) {
                       const ValueId x = b.in(dtype, {kT, 40});
                       const ValueId gate = b.op("mm", {x, b.in(dtype, {40, 72})});
                       const ValueId up = b.op("mm", {x, b.in(dtype, {40, 72})});
                       b.out(b.op("mul", {b.op("silu", {gate}), up}));
                     }});
    cases.push_back({"bias_and_residual" + suffix, [=](Build& b) {
                       const ValueId y = b.op("mm", {b.in(dtype, {kT, 40}), b.in(dtype, {40, 72})});
                       const ValueId z = b.op("gelu", {b.op("add", {y, b.in(dtype, {72})})});
                       b.out(b.op("add", {z, b.in(dtype, {kT, 72})}));
                     }});
    const std::vector<DType> narrow = dtype == kF32   ? std::vector{kU8}
                                      : dtype == kF16 ? std::vector{kI8}
                                                      : std::vector{kI8, kU8, DType::kF8E4M3};
    for (const DType from : narrow) {
      cases.push_back(
          {"cast_prologue_" + std::string(dtype_name(from)) + suffix, [=](Build& b) {
             const ValueId x = b.in(dtype, {kT, 200});
             b.out(b.op("mm", {x, b.to(b.in(from, {200, 72}), dtype)}));
             const ValueId w =
                 b.op("mul", {b.to(b.in(from, {40, 200}), dtype), b.in(dtype, {40, 1})});
             b.out(b.op("mul", {b.op("mm", {x, transposed(b, w, 0, 1)}), b.in(dtype, {40})}));
           }});
    }
    cases.push_back(
        {"scale_prologue" + suffix, [=](Build& b) {
           const ValueId x = b.op("mul", {b.in(dtype, {kT, 100}), b.in(dtype, {kT, 1})});
           b.out(b.op("mm", {x, b.in(dtype, {100, 72})}));
         }});
    cases.push_back({"split_of_one_matmul" + suffix, [=](Build& b) {
                       const ValueId h = b.op("mm", {b.in(dtype, {kT, 40}), b.in(dtype, {40, 96})});
                       const Attrs halves{{"dim", std::int64_t{1}}, {"split_size", Ints{48}}};
                       b.out(b.op("mul", {b.op("silu", {b.op("split", {h}, halves, 0)}),
                                          b.op("split", {h}, halves, 1)}));
                     }});
  }
  cases.push_back(packed_weights("packed_along_k", 7, true));
  cases.push_back(packed_weights("packed_along_n", 7, false));
  cases.push_back(packed_weights("packed_many_rows", kT, true));
  // The same by outputs, whose scales and zeros a thread loads a step ahead.
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    cases.push_back(
        {"packed_by_outputs_" + std::string(dtype_name(dtype)), [=](Build& b) {
           const auto reshaped = [&](ValueId x, Shape shape) {
             return b.op("reshape", {x}, {{"shape", std::move(shape)}});
           };
           const ValueId by =
               b.op("arange", {},
                    {{"end", std::int64_t{32}}, {"step", std::int64_t{4}}, {"dtype", kI32}});
           const ValueId mask = b.op("full", {}, {{"value", std::int64_t{15}}, {"dtype", kI32}});
           const ValueId shifted = b.op("bitwise_right_shift", {b.in(kI32, {72, 48, 1}), by});
           const ValueId numbers = reshaped(b.op("bitwise_and", {shifted, mask}), {72, 6, 64});
           const ValueId centred = b.op("sub", {numbers, b.to(b.in(DType::kI8, {72, 6, 1}), kI32)});
           const ValueId w = b.op("mul", {b.to(centred, dtype), b.in(dtype, {72, 6, 1})});
           b.out(b.op("mm", {b.in(dtype, {7, 384}), transposed(b, reshaped(w, {72, 384}), 0, 1)}));
         }});
  }
  // Each value is looked at once: this one has 2^30 paths to the weight.
  cases.push_back({"chain_in_front", [=](Build& b) {
                     ValueId w = b.in(kBF16, {64, 48});
                     for (int i = 0; i < 30; ++i) w = b.op("maximum", {w, w});
                     b.out(b.op("mm", {b.in(kBF16, {7, 64}), w}));
                   }});
  // Scales of 64 rows, of weights of 8 bits.
  cases.push_back({"group_scales", [=](Build& b) {
                     const ValueId w =
                         b.op("mul", {b.to(b.in(DType::kI8, {2, 64, 48}), DType::kF16),
                                      b.in(DType::kF16, {2, 1, 48})});
                     b.out(b.op("mm", {b.in(DType::kF16, {kT, 128}),
                                       b.op("reshape", {w}, {{"shape", Shape{128, 48}}})}));
                   }});
  return cases;
}

std::vector<Case> scaled_cases() {
  std::vector<Case> cases;
  const DType e4m3 = DType::kF8E4M3;
  const DType e5m2 = DType::kF8E5M2;
  const std::pair<DType, DType> pairs[] = {{e4m3, e4m3}, {e4m3, e5m2}, {e5m2, e4m3}};
  for (const auto& [left, right] : pairs) {
    for (const bool row_wise : {false, true}) {
      for (const std::int64_t k : {1, 40, 160}) {
        for (const bool columns : {false, true}) {
          const std::string name = "scaled_mm_" + std::string(dtype_name(left)) + "_" +
                                   std::string(dtype_name(right)) + "_k" + std::to_string(k) +
                                   (row_wise ? "_rows" : "") + (columns ? "_columns" : "");
          cases.push_back({name, [=, l = left, r = right](Build& b) {
                             const ValueId x = b.in(l, {kT, k});
                             ValueId w = columns ? b.in(r, {72, k}) : b.in(r, {k, 72});
                             if (columns) {
                               w = b.op("transpose", {w},
                                        {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}});
                             }
                             const ValueId sx = b.in(kF32, row_wise ? Shape{kT, 1} : Shape{});
                             const ValueId sw = b.in(kF32, row_wise ? Shape{1, 72} : Shape{1, 1});
                             const ValueId y = b.op("scaled_mm", {x, w, sx, sw});
                             b.out(b.op("add", {y, b.in(kBF16, {72})}));
                           }});
        }
      }
    }
  }
  return cases;
}

std::vector<Case> scan_cases() {
  std::vector<Case> cases;
  const auto along = [](std::int64_t dim) { return Attrs{{"dim", dim}}; };
  for (const Shape& shape : {Shape{kT, 40}, Shape{2, kT, 24}, Shape{5, 2000}}) {
    for (const std::int64_t dim : {0, 1}) {
      const std::string name = "_" + shape.back().str() + "_along_" + std::to_string(dim);
      cases.push_back({"cumsum" + name, [=](Build& b) {
                         const ValueId x = b.op("silu", {b.in(kF32, shape)});
                         const ValueId sum = b.op("cumsum", {x}, along(dim));
                         b.out(b.op("add", {sum, x}));
                         b.out(b.op("cumsum", {b.op("lt", {x, sum})}, along(dim)));
                       }});
    }
  }
  cases.push_back({"places_of_tokens", [=](Build& b) {
                     // Of each token among those of its expert.
                     const ValueId experts = b.in(kI64, {kT, 2});
                     const Attrs classes{{"num_classes", std::int64_t{8}}};
                     const ValueId hot = b.op("flatten", {b.op("one_hot", {experts}, classes)},
                                              {{"end_dim", std::int64_t{1}}});
                     const ValueId place = b.op("cumsum", {hot}, along(0));
                     const ValueId flat = b.op("view", {experts}, {{"shape", Shape{kT * 2, 1}}});
                     b.out(b.op("gather", {place, flat}, along(1)));
                   }});
  for (const std::int64_t width : {3, 64, 1000, 5000}) {
    cases.push_back(
        {"topk_" + std::to_string(width), [=](Build& b) {
           const ValueId x = b.in(width == 64 ? kBF16 : kF32, {kT, width});
           const Attrs some{{"k", std::int64_t{3}}};
           const ValueId p = b.op("softmax", {x});
           const ValueId weights = b.op("topk", {p}, some, 0);
           b.out(b.op("div",
                      {weights, b.op("sum", {weights}, {{"dim", Ints{-1}}, {"keepdim", true}})}));
           b.out(b.op("topk", {p}, some, 1));
           const ValueId y = b.op("relu", {x});  // read by others, too
           b.out(b.op("topk", {y}, some, 1));
           b.out(b.op("transpose", {y}, {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}}));
           b.out(y);
         }});
  }
  for (const std::int64_t width : {40, 5000, 20001}) {
    cases.push_back({"sample_" + std::to_string(width), [=](Build& b) {
                       // Behind a scaling, with parameters that are computed, too.
                       const auto share = [&] { return b.op("sigmoid", {b.in(kF32, {kT})}); };
                       const ValueId x = b.op("silu", {b.in(width == 40     ? kBF16
                                                            : width == 5000 ? kF16
                                                                            : kF32,
                                                            {kT, width})});
                       const ValueId k = b.in(kI32, {kT});
                       const ValueId p = share();
                       const ValueId least = b.op("mul", {share(), share()});
                       const ValueId hot = b.op("exp", {b.in(kF32, {kT})});
                       b.out(b.op("sample", {x, hot, k, p, least, share()}));
                       const Attrs none{{"shape", Shape{kT}}, {"dtype", kI32}, {"value", 0.0}};
                       b.out(b.op("sample", {x, hot, b.op("full", {}, none), p, least, share()}));
                     }});
  }
  cases.push_back({"topk_of_long_rows", [=](Build& b) {
                     // Equal elements in several parts, and an inner dim.
                     const ValueId x = b.in(kF32, {kT, 32000});
                     const ValueId coarse = b.op("round", {x});
                     for (const bool largest : {true, false}) {
                       const Attrs some{{"k", std::int64_t{20}}, {"largest", largest}};
                       b.out(b.op("topk", {coarse}, some, 0));
                       b.out(b.op("topk", {coarse}, some, 1));
                     }
                     const Attrs inner{{"k", std::int64_t{2}}, {"dim", std::int64_t{1}}};
                     b.out(b.op("topk", {b.in(kI64, {2, 16400, 2})}, inner, 1));
                   }});
  cases.push_back({"sorts", [=](Build& b) {
                     const ValueId x = b.in(kI64, {3, kT, 2});
                     b.out(b.op("sort", {x}, along(1), 0));
                     b.out(b.op("argsort", {x}, {{"dim", std::int64_t{1}}, {"descending", true}}));
                     const ValueId first = b.op("topk", {b.in(kF16, {20, kT})},
                                                {{"k", std::int64_t{5}}, {"dim", std::int64_t{0}}});
                     b.out(b.op("neg", {first}));
                   }});
  return cases;
}

class Ops : public ::testing::TestWithParam<Case> {};

TEST_P(Ops, EqualTheReference) {
  Build b;
  GetParam().build(b);
  const bool symbolic = b.graph().symbols().count("T") != 0;
  for (const std::int64_t t : {1, 7, 16}) {
    ASSERT_TRUE(
        testing::matches_reference(b.graph(), {{"T", t}}, 17 + static_cast<std::uint64_t>(t)))
        << "T=" << t << "\n"
        << to_text(b.graph());
    if (!symbolic) break;
  }
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Pointwise, Ops, ::testing::ValuesIn(pointwise_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Cast, Ops, ::testing::ValuesIn(cast_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Reduction, Ops, ::testing::ValuesIn(reduction_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Movement, Ops, ::testing::ValuesIn(movement_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Gather, Ops, ::testing::ValuesIn(gather_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Scan, Ops, ::testing::ValuesIn(scan_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Scaled, Ops, ::testing::ValuesIn(scaled_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Matmul, Ops, ::testing::ValuesIn(matmul_cases()), name_of);

// Kernels for Hopper multiply 8-bit floats as f16; both forms give the same values.
TEST(Scaled, EqualsTheReferenceOnHopperToo) {
  WorldOptions options = testing::world_options(1);
  if (options.device != DeviceKind::kCpu) GTEST_SKIP() << "a GPU has its own target";
  options.target = "sm_90a";
  for (const Case& c : scaled_cases()) {
    if (!c.name.ends_with("_k160") && !c.name.ends_with("_k160_columns")) continue;
    Build b;
    c.build(b);
    World world = World::open(options);
    Executable executable = Executable::compile(b.graph(), world);
    const RankTensors inputs = random_inputs(b.graph(), {{"T", 33}}, 5);
    EXPECT_TRUE(testing::same_as_reference(
        b.graph(), testing::run_once(executable, b.graph(), {{"T", 33}}, inputs),
        evaluate(b.graph(), inputs, {{"T", 33}})))
        << c.name;
  }
}

TEST(Scans, AreCleanUnderTheSanitizer) {
  for (const Case& c : scan_cases()) {
    if (c.name != "topk_64" && c.name != "sorts" && c.name != "cumsum_24_along_1") continue;
    Build b;
    c.build(b);
    EXPECT_TRUE(testing::runs_clean(b.graph(), {{"T", 7}}, 3)) << c.name;
  }
}

TEST(Scans, ATopKTakesInTheSoftmaxOfItsRows) {
  for (const std::int64_t width : {8, 1000}) {
    Build b;
    const ValueId shares = b.op("softmax", {b.in(kF32, {kT, width})});
    for (const ValueId result : b.node("topk", {shares}, {{"k", std::int64_t{4}}}).outputs) {
      b.out(result);
    }
    EXPECT_TRUE(testing::matches_reference_and_unfused(b.graph(), {{"T", 7}}, 3)) << width;
    World world = World::open(testing::world_options(1));
    EXPECT_EQ(Executable::compile(b.graph(), world).kernels().size(), 1U) << width;
  }
}

// Its extent is a prime number.
TEST(Scans, ATopKOfALongRowWithoutEqualPartsIsRefused) {
  Build b;
  b.out(b.op("topk", {b.in(kF32, {2, 16411})}, {{"k", std::int64_t{1}}}));
  World world = World::open(testing::world_options(1));
  try {
    static_cast<void>(Executable::compile(b.graph(), world));
    FAIL() << "it compiled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_STREQ(error.what(),
                 "v0: no kernel computes this topk: a topk of 16411 elements; a kernel holds rows "
                 "of up to 16384");
  }
}

// Far below zero, where 1 + tanh and 1 + erf would cancel, gelu keeps its digits.
TEST(Gelu, KeepsItsDigitsInTheTail) {
  for (const char* form : {"none", "tanh"}) {
    Graph graph;
    const ValueId x = graph.add_input({"x", {DType::kF32, {4, 64}}});
    const auto op = [&](const char* name, std::vector<ValueId> inputs, Attrs attrs = {}) {
      return graph.node(graph.add_node("", name, std::move(inputs), std::move(attrs))).outputs[0];
    };
    const ValueId five = op("full", {}, {{"value", 5.0}, {"dtype", DType::kF32}});
    const ValueId low = op("sub", {op("tanh", {x}), five});
    graph.add_output(op("gelu", {low}, {{"approximate", std::string(form)}}));
    EXPECT_TRUE(testing::matches_reference(graph, {}, 1)) << form;
  }
}

// Gate and up of one weight end in the kernel of their product, with the bits that the whole has.
TEST(JoinedWeight, IsOneKernel) {
  for (const char* form : {"mm", "addmm", "transposed"}) {
    Build b;
    const bool transposed = std::string_view(form) == "transposed";
    const ValueId x = b.in(DType::kBF16, {Dim::symbol("T"), 64});
    ValueId w = b.in(DType::kBF16, transposed ? Shape{96, 64} : Shape{64, 96});
    if (transposed)
      w = b.op("transpose", {w}, {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}});
    const ValueId joined = std::string_view(form) == "addmm"
                               ? b.op("addmm", {b.in(DType::kBF16, {96}), x, w})
                               : b.op("mm", {x, w});
    const auto half = [&](std::int64_t start) {
      return b.op("slice", {joined},
                  {{"dim", std::int64_t{1}}, {"start", start}, {"end", start + 48}});
    };
    const ValueId gate = half(0), up = half(48);
    const Graph graph = b.take({b.op("mul", {b.op("silu", {gate}), up})});
    EXPECT_TRUE(testing::matches_reference_and_unfused(graph, {{"T", 17}}, 1)) << form;
  }
}

}  // namespace
}  // namespace braid
