#include "ir/graph_schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "ir/attributes.h"
#include "ir/json_writer.h"
#include "ir/op_registry.h"
#include "ir/promotion.h"

namespace braid {
namespace {

// The part that does not depend on the ops.
constexpr std::string_view kHead = R"({
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "$id": "graph.schema.json",
  "title": "braid graph, version 1",
  "description": "The program of one rank; all ranks run it. Rules that span entries (order of definition, shapes, dtypes, waits) are checked by `braid`, not here.",
  "type": "object",
  "required": ["braid", "inputs", "nodes", "outputs"],
  "additionalProperties": false,
  "properties": {
    "braid": {"const": 1, "description": "Version of the format."},
    "name": {"type": "string"},
    "symbols": {
      "type": "object",
      "description": "Symbolic extents with their ranges.",
      "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "maxLength": 64},
      "additionalProperties": {"$ref": "#/$defs/symbol"}
    },
    "groups": {
      "type": "object",
      "description": "Process groups.",
      "propertyNames": {"minLength": 1},
      "additionalProperties": {"$ref": "#/$defs/group"}
    },
    "inputs": {"$ref": "#/$defs/inputs"},
    "nodes": {"$ref": "#/$defs/nodes"},
    "outputs": {"$ref": "#/$defs/outputs"}
  },
  "$defs": {
    "symbol": {
      "type": "object",
      "required": ["max"],
      "additionalProperties": false,
      "properties": {
        "min": {"type": "integer", "minimum": 0, "default": 1},
        "max": {"type": "integer", "minimum": 1, "exclusiveMaximum": 1099511627776},
        "multiple_of": {
          "type": "integer",
          "minimum": 1,
          "default": 1,
          "description": "Every value is a multiple of it, which proves that extents divide."
        },
        "buckets": {
          "type": "array",
          "maxItems": 64,
          "description": "Parts of the range with kernels of their own, ascending; what they leave is the last part. One symbol may have some.",
          "items": {
            "oneOf": [
              {"type": "integer", "minimum": 1, "description": "The values up to it that no bucket before has."},
              {
                "type": "object",
                "required": ["max", "multiple_of"],
                "additionalProperties": false,
                "description": "Of those the multiples.",
                "properties": {
                  "max": {"type": "integer", "minimum": 1},
                  "multiple_of": {"type": "integer", "minimum": 1}
                }
              }
            ]
          }
        }
      }
    },
    "group": {
      "type": "object",
      "required": ["size"],
      "additionalProperties": false,
      "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 65536},
        "symmetric": {
          "type": "boolean",
          "default": true,
          "description": "Whether the group may use symmetric memory."
        },
        "ranks": {
          "type": "array",
          "description": "On a mesh, the ranks of each instance of the group.",
          "items": {"type": "array", "items": {"type": "integer", "minimum": 0}}
        }
      }
    },
    "dtype": {"enum": ["f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i32", "i64", "i8", "u8", "bool"]},
    "extent": {
      "anyOf": [
        {"type": "integer"},
        {
          "type": "string",
          "description": "An affine expression of symbols, such as \"2*T+1\"; \"T/2\" or \"T//2\" where T has a multiple_of that 2 divides."
        }
      ]
    },
    "shape": {"type": "array", "maxItems": 8, "items": {"$ref": "#/$defs/extent"}},
    "inputs": {"type": "array", "items": {"$ref": "#/$defs/input"}},
    "nodes": {"type": "array", "items": {"$ref": "#/$defs/node"}},
    "number": {
      "anyOf": [
        {"type": ["number", "boolean"]},
        {"enum": ["inf", "-inf", "nan", "Infinity", "-Infinity", "NaN"]}
      ]
    },
    "operand": {
      "description": "A value, or a number, which counts as ATen's scalars do.",
      "anyOf": [{"$ref": "#/$defs/value"}, {"type": ["number", "boolean"]}]
    },
    "outputs": {"type": "array", "items": {"$ref": "#/$defs/value"}},
    "value": {
      "type": "string",
      "description": "An input, a node of one result, or \"node:i\" for result i."
    },
    "input": {
      "type": "object",
      "required": ["name", "dtype", "shape"],
      "additionalProperties": false,
      "properties": {
        "name": {"type": "string", "minLength": 1},
        "dtype": {"$ref": "#/$defs/dtype"},
        "shape": {"$ref": "#/$defs/shape"},
        "kind": {"enum": ["activation", "parameter", "state"], "default": "activation"},
        "per_rank": {
          "type": "boolean",
          "default": false,
          "description": "False: equal values on all ranks."
        },
        "comm_group": {
          "type": "string",
          "description": "Set by lowering: a communication buffer of that group."
        }
      }
    },
    "node": {
      "type": "object",
      "required": ["name", "op", "inputs"],
      "additionalProperties": false,
      "properties": {
        "name": {"type": "string", "minLength": 1},
        "op": {"enum": [)";
constexpr std::string_view kNode = R"(]},
        "inputs": {"type": "array"},
        "attrs": {"type": "object"},
        "hints": {"type": "object", "additionalProperties": {"type": "number"}},
        "comm_group": {
          "description": "Set by lowering: the result is a communication buffer of that group; a list when the node has several results.",
          "anyOf": [
            {"type": "string"},
            {"type": "array", "items": {"type": ["string", "null"]}}
          ]
        }
      },
      "allOf": [
)";
constexpr std::string_view kTail = R"(
      ]
    },
    "body": {
      "type": "object",
      "description": "The graph that a kernel node runs as one launch; symbols and groups are those of the graph around it.",
      "required": ["inputs", "nodes", "outputs"],
      "additionalProperties": false,
      "properties": {
        "name": {"type": "string"},
        "inputs": {"$ref": "#/$defs/inputs"},
        "nodes": {"$ref": "#/$defs/nodes"},
        "outputs": {"$ref": "#/$defs/outputs"}
      }
    }
  }
}
)";

std::string attribute(const AttrDef& def) {
  const std::string type = def.choices.empty()
                               ? std::string(schema_of(def.type))
                               : fmt::format(R"("enum": ["{}"])", fmt::join(def.choices, "\", \""));
  std::string text = fmt::format("{}: {{{}", json_string(def.name), type);
  const auto* integer = def.fallback ? std::get_if<std::int64_t>(&*def.fallback) : nullptr;
  const bool to_the_end =
      integer != nullptr && *integer == std::numeric_limits<std::int64_t>::max();
  if (def.fallback && !to_the_end) text += ", \"default\": " + json_attribute(*def.fallback);
  if (!def.about.empty()) text += ", \"description\": " + json_string(def.about);
  return text + '}';
}

/// The schema of a node with that op.
std::string rule(const OpDef& op) {
  std::vector<AttrDef> attrs = op.attrs;
  // A name that stands for two ops accepts the attributes of both.
  const OpDef* other = find_op(overload_of(op.name, true));
  const bool has_other = other != &op;
  if (has_other) attrs.insert(attrs.end(), other->attrs.begin(), other->attrs.end());
  std::vector<std::string> properties, required;
  for (const AttrDef& def : attrs) {
    properties.push_back(attribute(def));
    if (!def.fallback && !def.optional && !has_other) required.push_back(json_string(def.name));
  }
  const std::vector<std::string_view> values(first_number(op), R"({"$ref": "#/$defs/value"})");
  std::string operands;
  if (!values.empty()) operands = fmt::format(R"("prefixItems": [{}], )", fmt::join(values, ", "));
  operands += fmt::format(R"("items": {{"$ref": "#/$defs/{}"}}, "minItems": {})",
                          takes_numbers(op) ? "operand" : "value", op.min_inputs);
  if (op.max_inputs != std::numeric_limits<int>::max()) {
    operands += fmt::format(", \"maxItems\": {}", op.max_inputs);
  }
  const std::string needed =
      required.empty() ? "" : fmt::format("\"required\": [{}], ", fmt::join(required, ", "));
  return fmt::format(
      R"(        {{"if": {{"properties": {{"op": {{"const": {}}}}}}}, "then": {{{}"properties": {{)"
      R"("inputs": {{{}}}, "attrs": {{{}"additionalProperties": false, "properties": {{{}}}}}}}}}}})",
      json_string(op.name), required.empty() ? "" : "\"required\": [\"attrs\"], ", operands, needed,
      fmt::join(properties, ", "));
}

}  // namespace

std::string graph_schema() {
  std::vector<std::string> names, rules;
  for (const OpDef* op : all_ops()) {
    names.push_back(json_string(op->name));
    rules.push_back(rule(*op));
  }
  std::string text(kHead);
  text += fmt::format("{}", fmt::join(names, ", "));
  text += kNode;
  text += fmt::format("{}", fmt::join(rules, ",\n"));
  text += kTail;
  return text;
}

}  // namespace braid
