// The functions that fmt's headers only declare, defined in our own library: its symbols stay
// inside of libbraid, which a host that has another version of fmt loads beside its own, and
// nothing of fmt is needed at run time. (Header-only fmt would compile them in every file.)
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {
template dragonbox::decimal_fp<float> dragonbox::to_decimal(float) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal(double) noexcept;
}  // namespace detail
FMT_END_NAMESPACE
