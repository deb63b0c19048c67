#pragma once

/// Exports a symbol from libbraid.so; all others are hidden.
#define BRAID_API __attribute__((visibility("default")))
