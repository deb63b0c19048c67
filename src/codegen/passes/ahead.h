#pragma once

#include <map>
#include <set>

#include "codegen/tile/builder.h"

namespace braid::tile {

/// Which values of a loop's body can be made for a later iteration: from the induction variable and
/// from what stands outside of the loop alone, by pure operations, checks of indices and, where
/// `loads`, loads.
class Ahead {
 public:
  Ahead(const Program& program, const Inst& loop, bool loads)
      : p_(program),
        body_(loop.body.begin(), loop.body.end()),
        args_(loop.body_args.begin(), loop.body_args.end()),
        induction_(loop.body_args[0]),
        loads_(loads) {}

  [[nodiscard]] bool can_make(Id id);
  /// Whether it may be another one in each iteration.
  [[nodiscard]] bool varies(Id id);
  [[nodiscard]] bool in_body(Id id) const { return body_.contains(id); }
  [[nodiscard]] bool is_carried(Id id) const { return id != induction_ && args_.contains(id); }
  [[nodiscard]] Id induction() const { return induction_; }

 private:
  const Program& p_;
  std::set<Id> body_, args_;
  Id induction_;
  bool loads_;
  std::map<Id, bool> can_make_, varies_;
};

/// Copies, into the builder's block, the instructions of a loop body that a value needs, with the
/// induction variable replaced.
class Cloner {
 public:
  Cloner(Builder& builder, const Ahead& ahead, Id replacement) : b_(builder), ahead_(ahead) {
    done_[ahead.induction()] = replacement;
  }
  Id operator()(Id id);

 private:
  Builder& b_;
  const Ahead& ahead_;
  std::map<Id, Id> done_;
};

}  // namespace braid::tile
