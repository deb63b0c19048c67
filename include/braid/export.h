#pragma once

/// Marks what libbraid.so offers: everything else is hidden in it.
#define BRAID_API __attribute__((visibility("default")))
