#include "ir/place.h"

#include <fmt/format.h>

#include "ir/text.h"

namespace braid {

std::string Place::str() const {
  const Place* root = this;
  while (root->parent_ != nullptr) root = root->parent_;
  std::string path = pointer();
  if (root->file_.empty()) return path;
  return path.empty() ? std::string(root->file_) : fmt::format("{}:{}", root->file_, path);
}

std::string Place::pointer() const {
  if (parent_ == nullptr) return "";
  if (index_ != kNoIndex) return fmt::format("{}/{}", parent_->pointer(), index_);
  return parent_->pointer() + pointer_step(key_);
}

std::string pointer_step(std::string_view key) {
  std::string step = "/";
  for (char c : printable(key)) {
    if (c == '~') {
      step += "~0";
    } else if (c == '/') {
      step += "~1";
    } else {
      step += c;
    }
  }
  return step;
}

}  // namespace braid
