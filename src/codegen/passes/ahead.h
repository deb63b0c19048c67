#pragma once

#include <map>
#include <set>

#include "codegen/tile/builder.h"

namespace braid::tile {

/// Finds the values of a loop's body that can be computed for a later iteration: those that depend
/// only on the induction variable and on values from outside the loop, through pure operations,
/// checks of indices and, if `loads`, loads.
class Ahead {
 public:
  Ahead(const Program& program, const Inst& loop, bool loads)
      : p_(program),
        body_(loop.body.begin(), loop.body.end()),
        args_(loop.body_args.begin(), loop.body_args.end()),
        induction_(loop.body_args[0]),
        loads_(loads) {}

  [[nodiscard]] bool can_make(Id id);
  /// Whether it may differ between iterations.
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

/// Copies the instructions that a value of a loop body needs into the builder's block, with the
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
